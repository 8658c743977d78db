-- stage 0, round 0: MergeInto
--   reads d_1: TopicInput orders
SELECT k0, bad, max_by(c1, struct(struct(at, part), off)) FILTER (WHERE c1 IS NOT NULL) AS p0, transform(array_sort(collect_list(named_struct('p', struct(at, part), 'o', off, 'v', c2)), (l_, r_) -> CASE WHEN l_.p < r_.p OR (l_.p = r_.p AND l_.o < r_.o) THEN -1 WHEN l_.p = r_.p AND l_.o = r_.o THEN 0 ELSE 1 END), e_ -> e_.v) AS p1, max(ts) AS ts, count(*) AS skipped
FROM (
  SELECT *, max(IF(bad = 0, ts, NULL)) OVER (PARTITION BY part ORDER BY off ROWS UNBOUNDED PRECEDING) AS at
  FROM (
    SELECT k0, c0, c1, c2, present, ts, part, off, IF(bad = 0 AND NOT (present AND k0 IS NOT NULL), 3, bad) AS bad
    FROM (
      SELECT IF(bad > 0, NULL, c0) AS k0, c0, c1, c2, present, ts, part, off, bad
      FROM (
        SELECT k0 AS k0, c1 AS c0, c0 AS c1, c2 AS c2, present, ts, part, off, bad, hdr
        FROM (
          SELECT k0, c0, c1, c2, c3, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
          FROM d_1
        )
      )
    )
  )
)
GROUP BY k0, bad;
