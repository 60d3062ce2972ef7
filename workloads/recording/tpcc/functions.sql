-- What clause 4.3.2 of TPC-C draws, and the two transactions that loop: New-Order and Delivery.

CREATE FUNCTION random_int(low integer, high integer) RETURNS integer LANGUAGE sql VOLATILE
    RETURN low + floor(random() * (high - low + 1))::integer;

-- From zero to `high` in steps of a ten-thousandth.
CREATE FUNCTION random_rate(high numeric) RETURNS numeric LANGUAGE sql VOLATILE
    RETURN round(random()::numeric * high, 4);

-- Hexadecimal digits stand for the alphanumeric characters of the specification.
CREATE FUNCTION a_string(low integer, high integer) RETURNS text LANGUAGE sql VOLATILE
    RETURN substr(repeat(md5(random()::text), (high + 31) / 32), 1, random_int(low, high));

CREATE FUNCTION n_string(digits integer) RETURNS text LANGUAGE sql VOLATILE
    RETURN lpad(floor(random() * 10::float8 ^ digits)::bigint::text, digits, '0');

CREATE FUNCTION zip() RETURNS text LANGUAGE sql VOLATILE RETURN n_string(4) || '11111';

CREATE FUNCTION state() RETURNS text LANGUAGE sql VOLATILE
    RETURN chr(random_int(65, 90)) || chr(random_int(65, 90));

-- One in ten holds the word ORIGINAL.
CREATE FUNCTION item_data() RETURNS text LANGUAGE sql VOLATILE
    RETURN CASE WHEN random() < 0.1 THEN a_string(9, 21) || 'ORIGINAL' || a_string(9, 21) ELSE a_string(26, 50) END;

CREATE FUNCTION nurand(a integer, c integer, low integer, high integer) RETURNS integer LANGUAGE sql VOLATILE
    RETURN ((random_int(0, a) | random_int(low, high)) + c) % (high - low + 1) + low;

CREATE FUNCTION last_name(number integer) RETURNS text LANGUAGE sql IMMUTABLE
    RETURN (ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])[number / 100 + 1]
        || (ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])[number / 10 % 10 + 1]
        || (ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])[number % 10 + 1];

-- Clause 2.4.2. False when the last item does not exist: the caller then rolls back. The lines are taken in the order
-- of their stock rows, so that no two orders wait for each other.
CREATE FUNCTION new_order(in_w_id integer, in_d_id integer, in_c_id integer, lines integer, is_invalid boolean,
                          warehouses integer, seed double precision) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    w_tax_now numeric;
    d_tax_now numeric;
    discount numeric;
    o_id_new integer;
    line record;
    number integer := 0;
    all_local integer := 1;
    price numeric;
    dist_info text;
BEGIN
    PERFORM setseed(seed);
    SELECT w_tax INTO STRICT w_tax_now FROM warehouse WHERE w_id = in_w_id;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = in_w_id AND d_id = in_d_id
        RETURNING d_next_o_id - 1, d_tax INTO STRICT o_id_new, d_tax_now;
    SELECT c_discount INTO STRICT discount FROM customer
        WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_id = in_c_id;
    FOR line IN
        SELECT item, quantity,
               CASE WHEN is_remote THEN (in_w_id - 1 + other) % warehouses + 1 ELSE in_w_id END AS supplier
        FROM (SELECT nurand(8191, 7911, 1, 100000) AS item, random_int(1, 10) AS quantity,
                     warehouses > 1 AND random() < 0.01 AS is_remote,
                     random_int(1, greatest(warehouses - 1, 1)) AS other
              FROM generate_series(1, lines)) AS drawn
        ORDER BY supplier, item
    LOOP
        number := number + 1;
        IF is_invalid AND number = lines THEN
            line.item := 100001;
        END IF;
        SELECT i_price INTO price FROM item WHERE i_id = line.item;
        IF NOT FOUND THEN
            RETURN false;
        END IF;
        UPDATE stock SET
            s_quantity = s_quantity - line.quantity + CASE WHEN s_quantity >= line.quantity + 10 THEN 0 ELSE 91 END,
            s_ytd = s_ytd + line.quantity, s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + (line.supplier <> in_w_id)::integer
            WHERE s_w_id = line.supplier AND s_i_id = line.item
            RETURNING (ARRAY[s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, s_dist_08,
                             s_dist_09, s_dist_10])[in_d_id] INTO STRICT dist_info;
        INSERT INTO order_line VALUES (o_id_new, in_d_id, in_w_id, number, line.item, line.supplier, NULL,
                                       line.quantity, line.quantity * price, dist_info);
        IF line.supplier <> in_w_id THEN
            all_local := 0;
        END IF;
    END LOOP;
    INSERT INTO orders VALUES (o_id_new, in_d_id, in_w_id, in_c_id, clock_timestamp(), NULL, lines, all_local);
    INSERT INTO new_order VALUES (o_id_new, in_d_id, in_w_id);
    RETURN true;
END $$;

-- Clause 2.7.4: the oldest undelivered order of each district that has one. Returns how many were delivered.
CREATE FUNCTION deliver(in_w_id integer, carrier integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    delivered integer := 0;
    o_id_old integer;
    buyer integer;
    total numeric;
BEGIN
    FOR district_id IN 1..10 LOOP
        SELECT no_o_id INTO o_id_old FROM new_order WHERE no_w_id = in_w_id AND no_d_id = district_id
            ORDER BY no_o_id LIMIT 1 FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        DELETE FROM new_order WHERE no_w_id = in_w_id AND no_d_id = district_id AND no_o_id = o_id_old;
        UPDATE orders SET o_carrier_id = carrier WHERE o_w_id = in_w_id AND o_d_id = district_id AND o_id = o_id_old
            RETURNING o_c_id INTO STRICT buyer;
        WITH lines AS (
            UPDATE order_line SET ol_delivery_d = clock_timestamp()
                WHERE ol_w_id = in_w_id AND ol_d_id = district_id AND ol_o_id = o_id_old RETURNING ol_amount)
            SELECT sum(ol_amount) INTO STRICT total FROM lines;
        UPDATE customer SET c_balance = c_balance + total, c_delivery_cnt = c_delivery_cnt + 1
            WHERE c_w_id = in_w_id AND c_d_id = district_id AND c_id = buyer;
        delivered := delivered + 1;
    END LOOP;
    RETURN delivered;
END $$;
