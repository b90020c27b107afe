package dev.nereid.cache.redis;

import java.util.Map;

/**
 * User and password for Redis. Immutable.
 *
 * @param user the user name; empty for Redis' default user
 * @param password the password; empty for none
 */
record RedisCredentials(String user, String password) {
    /** The variables of the reference. */
    static final String USER_VARIABLE = "TRITONCACHE_REDIS_USERNAME";

    static final String PASSWORD_VARIABLE = "TRITONCACHE_REDIS_PASSWORD";

    /** Returns the credentials of the settings, each with the environment variable as its default. */
    static RedisCredentials of(Map<String, String> settings, Map<String, String> environment) {
        return new RedisCredentials(
                settings.getOrDefault("user", environment.getOrDefault(USER_VARIABLE, "")),
                settings.getOrDefault("password", environment.getOrDefault(PASSWORD_VARIABLE, "")));
    }

    /** Never shows the password. */
    @Override
    public String toString() {
        return user;
    }
}
