-- stage 0, round 0: SaveRows
--   reads o_1: ObjectInput USERS
--   reads o_2: ObjectInput ADDRESSES
SELECT k0
FROM (
  SELECT *
  FROM o_1
)
UNION
SELECT k0
FROM (
  SELECT *
  FROM o_2
);

-- stage 1, round 1: Upsert
--   reads h_3: SavedRows 0
--   reads l_4: TableLookup USERS 0
--   reads o_1: ObjectInput USERS
--   reads l_5: TableLookup ADDRESSES 0
--   reads o_2: ObjectInput ADDRESSES
SELECT k0, a0 AS c0, a1 AS c1, coalesce(a_ts, b_ts) AS ts, a_present AS present
FROM (
  SELECT k0, b_present, b0 AS b0, b6 AS b1, b_ts, a_present, a0 AS a0, a6 AS a1, a_ts
  FROM (
    SELECT l.k0, l.b_present AND r.b_present AS b_present, IF(l.b_present, l.b0, NULL) AS b0, IF(l.b_present, l.b1, NULL) AS b1, IF(l.b_present, l.b2, NULL) AS b2, IF(l.b_present, l.b3, NULL) AS b3, IF(l.b_present, l.b4, NULL) AS b4, IF(l.b_present, l.b5, NULL) AS b5, IF(r.b_present, r.b0, NULL) AS b6, IF(r.b_present, r.b1, NULL) AS b7, IF(r.b_present, r.b2, NULL) AS b8, IF(r.b_present, r.b3, NULL) AS b9, IF(r.b_present, r.b4, NULL) AS b10, greatest(l.b_ts, r.b_ts) AS b_ts, l.a_present AND r.a_present AS a_present, IF(l.a_present, l.a0, NULL) AS a0, IF(l.a_present, l.a1, NULL) AS a1, IF(l.a_present, l.a2, NULL) AS a2, IF(l.a_present, l.a3, NULL) AS a3, IF(l.a_present, l.a4, NULL) AS a4, IF(l.a_present, l.a5, NULL) AS a5, IF(r.a_present, r.a0, NULL) AS a6, IF(r.a_present, r.a1, NULL) AS a7, IF(r.a_present, r.a2, NULL) AS a8, IF(r.a_present, r.a3, NULL) AS a9, IF(r.a_present, r.a4, NULL) AS a10, greatest(l.a_ts, r.a_ts) AS a_ts
    FROM (
      SELECT k0, b_present, b0 AS b0, b1 AS b1, b_ts AS b2, CAST(NULL AS INT) AS b3, CAST(NULL AS BIGINT) AS b4, k0 AS b5, b_ts, a_present, a0 AS a0, a1 AS a1, a_ts AS a2, CAST(NULL AS INT) AS a3, CAST(NULL AS BIGINT) AS a4, k0 AS a5, a_ts
      FROM (
        SELECT h.k0, coalesce(d.b_present, f.ts IS NOT NULL) AS b_present, IF(d.a_present IS NULL, f.c0, d.b0) AS b0, IF(d.a_present IS NULL, f.c1, d.b1) AS b1, IF(d.a_present IS NULL, f.ts, d.b_ts) AS b_ts, coalesce(d.a_present, f.ts IS NOT NULL) AS a_present, IF(d.a_present IS NULL, f.c0, d.a0) AS a0, IF(d.a_present IS NULL, f.c1, d.a1) AS a1, IF(d.a_present IS NULL, f.ts, d.a_ts) AS a_ts
        FROM (
          SELECT DISTINCT k0
          FROM h_3
        ) h
        LEFT JOIN o_1 d ON h.k0 = d.k0
        LEFT JOIN l_4 f ON h.k0 = f.k0
      )
    ) l
    JOIN (
      SELECT k0, b_present, b0 AS b0, b_ts AS b1, CAST(NULL AS INT) AS b2, CAST(NULL AS BIGINT) AS b3, k0 AS b4, b_ts, a_present, a0 AS a0, a_ts AS a1, CAST(NULL AS INT) AS a2, CAST(NULL AS BIGINT) AS a3, k0 AS a4, a_ts
      FROM (
        SELECT h.k0, coalesce(d.b_present, f.ts IS NOT NULL) AS b_present, IF(d.a_present IS NULL, f.c0, d.b0) AS b0, IF(d.a_present IS NULL, f.ts, d.b_ts) AS b_ts, coalesce(d.a_present, f.ts IS NOT NULL) AS a_present, IF(d.a_present IS NULL, f.c0, d.a0) AS a0, IF(d.a_present IS NULL, f.ts, d.a_ts) AS a_ts
        FROM (
          SELECT DISTINCT k0
          FROM h_3
        ) h
        LEFT JOIN o_2 d ON h.k0 = d.k0
        LEFT JOIN l_5 f ON h.k0 = f.k0
      )
    ) r ON l.k0 = r.k0
  )
);
