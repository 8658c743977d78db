-- stage 0, round 0: Upsert
--   reads o_1: ObjectInput USERS
SELECT k0, a0 AS c0, coalesce(a_ts, b_ts) AS ts, a_present AS present
FROM (
  SELECT k0, b_present, (upper(b0)) AS b0, b_ts, a_present, (upper(a0)) AS a0, a_ts
  FROM (
    SELECT *
    FROM o_1
  )
);
