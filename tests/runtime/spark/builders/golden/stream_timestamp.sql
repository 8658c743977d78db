-- stage 0, round 0: Append
--   reads d_1: TopicInput orders
SELECT k0, c0, present, ts, part, off, IF(bad = 0 AND NOT (ts IS NOT NULL), 6, bad) AS bad, hdr
FROM (
  SELECT k0, c0, present, IF(present, IF(c0 >= 0, c0, NULL), ts) AS ts, part, off, bad, hdr
  FROM (
    SELECT k0 AS k0, (CAST(c2 AS BIGINT)) AS c0, present, ts, part, off, bad, hdr
    FROM (
      SELECT k0, c0, c1, c2, c3, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
      FROM d_1
    )
  )
);
