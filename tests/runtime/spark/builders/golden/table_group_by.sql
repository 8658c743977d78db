-- stage 0, round 0: MergeInto
--   reads o_1: ObjectInput USERS
SELECT k0, first(p0) FILTER (WHERE NOT lost) AS p0, first(p0) FILTER (WHERE lost) AS p1, bool_or(NOT lost) AS p2, bool_or(lost) AS p3, max(ts) AS ts
FROM (
  SELECT k0, lost, COUNT(c1) AS p0, max(ts) AS ts
  FROM (
    SELECT *
    FROM (
      SELECT row.*, ts, 0 AS part, ts AS off, 0 AS bad
      FROM (
        SELECT coalesce(a_ts, b_ts) AS ts, explode(array(named_struct('k0', b0, 'c0', b0, 'c1', b1, 'present', b_present, 'lost', True), named_struct('k0', a0, 'c0', a0, 'c1', a1, 'present', a_present, 'lost', False))) AS row
        FROM (
          SELECT k0, b_present, b1 AS b0, b_ts AS b1, b_ts, a_present, a1 AS a0, a_ts AS a1, a_ts
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
