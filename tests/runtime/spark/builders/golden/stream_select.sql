-- stage 0, round 0: Append
--   reads d_1: TopicInput orders
SELECT k0, c0, c1, present, ts AS ts, part, off, bad, hdr
FROM (
  SELECT k0 AS k0, (upper(c0)) AS c0, (c2 * 2) AS c1, present, ts, part, off, bad, hdr
  FROM (
    SELECT k0, c0, c1, c2, c3, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
    FROM d_1
  )
);
