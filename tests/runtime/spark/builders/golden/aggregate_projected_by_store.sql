-- stage 0, round 0: MergeInto
--   reads d_1: TopicInput orders
SELECT k0, bad, CAST(COALESCE(SUM(c1), 0) AS INT) AS p0, COUNT(c2) AS p1, max(ts) AS ts, count(*) AS skipped
FROM (
  SELECT k0, c0, c1, c2, present, ts, part, off, IF(bad = 0 AND NOT (present AND k0 IS NOT NULL), 3, bad) AS bad
  FROM (
    SELECT IF(bad > 0, NULL, c0) AS k0, c0, c1, c2, present, ts, part, off, bad
    FROM (
      SELECT k0 AS k0, c1 AS c0, c2 AS c1, IF(present, ts, NULL) AS c2, present, ts, part, off, bad, hdr
      FROM (
        SELECT k0, c0, c1, c2, c3, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
        FROM d_1
      )
    )
  )
)
GROUP BY k0, bad;
