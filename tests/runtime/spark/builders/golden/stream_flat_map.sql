-- stage 0, round 0: Append
--   reads d_1: TopicInput orders
SELECT k0, c0, present, ts AS ts, part, off, bad, hdr
FROM (
  SELECT k0 AS k0, c4 AS c0, present, ts, part, off, bad, hdr
  FROM (
    SELECT k0, c0, c1, c2, c3, z.a0 AS c4, present, ts, part, off, bad, hdr
    FROM (
      SELECT *, explode(arrays_zip(a0)) AS z
      FROM (
        SELECT *, IF(bad > 0, array(NULL), coalesce(c3, array())) AS a0
        FROM (
          SELECT k0, c0, c1, c2, c3, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
          FROM d_1
        )
        WHERE bad > 0 OR present
      )
    )
  )
);
