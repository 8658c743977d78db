-- stage 0, round 0: Append
--   reads d_1: TopicInput orders
SELECT k0, c0, present, ts AS ts, part, off, bad, hdr
FROM (
  SELECT k0 AS k0, c2 AS c0, present, ts, part, off, bad, hdr
  FROM (
    SELECT *
    FROM (
      SELECT k0, c0, c1, c2, c3, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
      FROM d_1
    )
    WHERE bad > 0 OR (present AND (COALESCE((c2 > 5), FALSE)))
  )
);
