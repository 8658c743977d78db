-- stage 0, round 0: UpsertWindows
--   reads d_1: TopicInput w
SELECT k0, k1, k2, max_by(c0, struct(part, off)) AS c0, max_by(part, struct(part, off)) AS c1, min(off) AS c2, max(off) AS c3, max_by(ts, struct(part, off)) AS ts, NOT max_by(tombstone, struct(part, off)) AS present, bad, count(*) AS skipped
FROM (
  SELECT k0, k1, k2, c0, ts AS ts, part, off, tombstone, bad
  FROM d_1
)
GROUP BY k0, k1, k2, bad;
