-- stage 0, round 0: MergeInto
--   reads d_1: TopicInput orders
SELECT k0, bad, COUNT(c1) AS p0, max(ts) AS ts, count(*) AS skipped
FROM (
  SELECT k0, c0, c1, present, ts, part, off, IF(bad = 0 AND NOT (present AND k0 IS NOT NULL), 3, bad) AS bad, hdr
  FROM (
    SELECT k0 AS k0, k0 AS c0, IF(present, ts, NULL) AS c1, present, ts, part, off, bad, hdr
    FROM (
      SELECT k0, c0, c1, c2, c3, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
      FROM d_1
    )
  )
)
GROUP BY k0, bad;
