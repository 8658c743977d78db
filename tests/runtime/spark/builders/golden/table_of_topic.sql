-- stage 0, round 0: Upsert
--   reads d_1: TopicInput users
SELECT k0, max_by(c0, struct(part, off)) AS c0, max_by(c1, struct(part, off)) AS c1, max_by(ts, struct(part, off)) AS ts, NOT max_by(tombstone, struct(part, off)) AS present, bad, count(*) AS skipped
FROM (
  SELECT k0, c0, c1, ts AS ts, part, off, tombstone, bad
  FROM d_1
)
GROUP BY k0, bad;
