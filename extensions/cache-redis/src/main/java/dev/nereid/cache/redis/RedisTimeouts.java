package dev.nereid.cache.redis;

import java.time.Duration;

/**
 * Timeouts of connections to Redis and of commands. Immutable.
 *
 * @param connect how long a connection may take
 * @param command how long a lookup or an insert may take
 */
record RedisTimeouts(Duration connect, Duration command) {}
