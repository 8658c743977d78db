-- stage 0, round 0: Upsert
--   reads o_1: ObjectInput USERS
SELECT bp0 AS k0, bp1 AS k1, k0 AS k2, CAST(NULL AS STRING) AS c0, CAST(NULL AS STRING) AS c1, coalesce(a_ts, b_ts) AS ts, false AS present
FROM (
  SELECT *, b1 AS bp0, (length(b0)) AS bp1, a1 AS ap0, (length(a0)) AS ap1
  FROM (
    SELECT *
    FROM o_1
  )
)
WHERE b_present AND NOT (a_present AND bp0 <=> ap0 AND bp1 <=> ap1)
UNION ALL
SELECT ap0 AS k0, ap1 AS k1, k0 AS k2, a0 AS c0, a1 AS c1, a_ts AS ts, true AS present
FROM (
  SELECT *, b1 AS bp0, (length(b0)) AS bp1, a1 AS ap0, (length(a0)) AS ap1
  FROM (
    SELECT *
    FROM o_1
  )
)
WHERE a_present;
