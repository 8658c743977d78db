-- stage 0, round 0: Append
--   reads d_1: TopicInput orders
SELECT k0, c0, c1, c2, c3, present, ts AS ts, part, off, bad, hdr
FROM (
  SELECT k0 AS k0, c0 AS c0, c2 AS c1, c3 AS c2, c4 AS c3, present, ts, part, off, bad, hdr
  FROM (
    SELECT IF(bad > 0, NULL, IF(present, c1, NULL)) AS k0, c0, c1, c2, c3, k0 AS c4, present, ts, part, off, bad, hdr
    FROM (
      SELECT k0, c0, c1, c2, c3, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
      FROM d_1
    )
  )
);
