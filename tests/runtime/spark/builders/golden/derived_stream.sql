-- stage 0, round 0: Append
--   reads o_1: ObjectInput FIRST
SELECT k0, c0, present, ts AS ts, part, off, bad, hdr
FROM (
  SELECT k0 AS k0, c0 AS c0, present, ts, part, off, bad, hdr
  FROM (
    SELECT k0, c0, present, ts, part, off, 0 AS bad, hdr
    FROM o_1
  )
);
