-- stage 0, round 0: MergeInto
--   reads d_1: TopicInput orders
SELECT k0, bad, CAST(COALESCE(SUM(c1), 0) AS INT) AS p0, MAX(c2) AS p1, max(ts) AS ts, count(*) AS skipped
FROM (
  SELECT k0, c0, c1, c2, present, ts, part, off, IF(bad = 0 AND NOT (present AND k0 IS NOT NULL), 3, bad) AS bad
  FROM (
    SELECT IF(bad > 0, NULL, c0) AS k0, c0, c1, c2, present, ts, part, off, bad
    FROM (
      SELECT k0 AS k0, c1 AS c0, c2 AS c1, c0 AS c2, present, ts, part, off, bad, hdr
      FROM (
        SELECT k0, c0, c1, c2, c3, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
        FROM d_1
      )
    )
  )
)
GROUP BY k0, bad;

-- stage 1, round 1: Upsert
--   reads s_2: SavedRows 0
SELECT k0, a0 AS c0, a1 AS c1, coalesce(a_ts, b_ts) AS ts, a_present AS present
FROM (
  SELECT k0, b_present, (b0 + 1) AS b0, b1 AS b1, b_ts, a_present, (a0 + 1) AS a0, a1 AS a1, a_ts
  FROM (
    SELECT k0, b_present, br0 AS b0, br1 AS b1, b_ts, a_present, ar0 AS a0, ar1 AS a1, a_ts
    FROM (
      SELECT k0, b_present, b0 AS br0, b1 AS br1, b_ts, a_present, a0 AS ar0, a1 AS ar1, a_ts
      FROM s_2
    )
  )
);
