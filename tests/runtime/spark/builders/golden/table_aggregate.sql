-- stage 0, round 0: MergeInto
--   reads o_1: ObjectInput USERS
SELECT k0, first(p0) FILTER (WHERE NOT lost) AS p0, first(p1) FILTER (WHERE NOT lost) AS p1, first(p0) FILTER (WHERE lost) AS p2, first(p1) FILTER (WHERE lost) AS p3, bool_or(NOT lost) AS p4, bool_or(lost) AS p5, max(ts) AS ts
FROM (
  SELECT k0, lost, COUNT(c1) AS p0, transform(array_sort(collect_list(named_struct('p', part, 'o', off, 'v', c2)), (l_, r_) -> CASE WHEN l_.p < r_.p OR (l_.p = r_.p AND l_.o < r_.o) THEN -1 WHEN l_.p = r_.p AND l_.o = r_.o THEN 0 ELSE 1 END), e_ -> e_.v) AS p1, max(ts) AS ts
  FROM (
    SELECT *
    FROM (
      SELECT row.*, ts, 0 AS part, ts AS off, 0 AS bad
      FROM (
        SELECT coalesce(a_ts, b_ts) AS ts, explode(array(named_struct('k0', b0, 'c0', b0, 'c1', b1, 'c2', b2, 'present', b_present, 'lost', True), named_struct('k0', a0, 'c0', a0, 'c1', a1, 'c2', a2, 'present', a_present, 'lost', False))) AS row
        FROM (
          SELECT k0, b_present, b1 AS b0, b_ts AS b1, b0 AS b2, b_ts, a_present, a1 AS a0, a_ts AS a1, a0 AS a2, a_ts
          FROM (
            SELECT *
            FROM o_1
          )
        )
      )
    )
    WHERE present AND k0 IS NOT NULL
  )
  GROUP BY k0, lost
)
GROUP BY k0;

-- stage 1, round 1: Upsert
--   reads s_2: SavedRows 0
SELECT k0, a0 AS c0, a1 AS c1, coalesce(a_ts, b_ts) AS ts, a_present AS present
FROM (
  SELECT k0, b_present, (b0 + (CAST(0 AS BIGINT))) AS b0, b1 AS b1, b_ts, a_present, (a0 + (CAST(0 AS BIGINT))) AS a0, a1 AS a1, a_ts
  FROM (
    SELECT k0, b_present, br0 AS b0, br1 AS b1, b_ts, a_present, ar0 AS a0, ar1 AS a1, a_ts
    FROM (
      SELECT k0, b_present, b0 AS br0, b1 AS br1, b_ts, a_present, a0 AS ar0, a1 AS ar1, a_ts
      FROM s_2
    )
  )
);
