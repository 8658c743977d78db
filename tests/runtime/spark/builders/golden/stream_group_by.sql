-- stage 0, round 0: MergeInto
--   reads d_1: TopicInput orders
SELECT k0, k1, bad, COUNT(c2) AS p0, max(ts) AS ts, count(*) AS skipped
FROM (
  SELECT k0, k1, c0, c1, c2, present, ts, part, off, IF(bad = 0 AND NOT (present AND k0 IS NOT NULL AND k1 IS NOT NULL), 3, bad) AS bad
  FROM (
    SELECT IF(bad > 0, NULL, c0) AS k0, IF(bad > 0, NULL, c1) AS k1, c0, c1, c2, present, ts, part, off, bad
    FROM (
      SELECT k0 AS k0, c1 AS c0, c0 AS c1, IF(present, ts, NULL) AS c2, present, ts, part, off, bad, hdr
      FROM (
        SELECT k0, c0, c1, c2, c3, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
        FROM d_1
      )
    )
  )
)
GROUP BY k0, k1, bad;
