-- Payment, clause 2.5: 15 % of the customers belong to another warehouse, 60 % are found by their last name.
\set w_id :client_id % :warehouses + 1
\set d_id random(1, 10)
\set c_w_id :w_id
\set c_d_id :d_id
\if :warehouses > 1 and random(1, 100) > 85
\set c_w_id (:w_id - 1 + random(1, :warehouses - 1)) % :warehouses + 1
\set c_d_id random(1, 10)
\endif
\set amount random(100, 500000) / 100.0
BEGIN;
UPDATE warehouse SET w_ytd = w_ytd + :amount WHERE w_id = :w_id RETURNING w_name \gset
UPDATE district SET d_ytd = d_ytd + :amount WHERE d_w_id = :w_id AND d_id = :d_id RETURNING d_name \gset
\if random(1, 100) <= 60
\set number ((random(0, 255) | random(0, 999)) + 173) % 1000
SELECT c_id FROM (
    SELECT c_id, row_number() OVER (ORDER BY c_first) AS place, count(*) OVER () AS found FROM customer
    WHERE c_w_id = :c_w_id AND c_d_id = :c_d_id AND c_last = last_name(:number)) AS named
    WHERE place = (found + 1) / 2 \gset
\else
\set c_id ((random(0, 1023) | random(1, 3000)) + 259) % 3000 + 1
\endif
UPDATE customer SET c_balance = c_balance - :amount, c_ytd_payment = c_ytd_payment + :amount,
    c_payment_cnt = c_payment_cnt + 1,
    c_data = CASE WHEN c_credit = 'BC' THEN left(
        concat_ws(' ', c_id, c_d_id, c_w_id, :d_id::integer, :w_id::integer, :amount::numeric, c_data), 500)
        ELSE c_data END
    WHERE c_w_id = :c_w_id AND c_d_id = :c_d_id AND c_id = :c_id;
INSERT INTO history VALUES (:c_id, :c_d_id, :c_w_id, :d_id, :w_id, clock_timestamp(), :amount,
    concat(:w_name::text, '    ', :d_name::text));
COMMIT;
