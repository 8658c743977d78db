-- stage 0, round 0: Upsert
--   reads o_1: ObjectInput USERS
SELECT k0, a0 AS c0, coalesce(a_ts, b_ts) AS ts, a_present AS present
FROM (
  SELECT k0, b_present, b0 AS b0, b_ts, a_present, a0 AS a0, a_ts
  FROM (
    SELECT k0, b_present AND coalesce(COALESCE((b1 = 'north'), FALSE), false) AS b_present, b0, b1, b_ts, a_present AND coalesce(COALESCE((a1 = 'north'), FALSE), false) AS a_present, a0, a1, a_ts
    FROM (
      SELECT *
      FROM o_1
    )
  )
);
