package dev.nereid.cache.redis;

/**
 * User and password for Redis. Immutable.
 *
 * @param user the user name; empty for Redis' default user
 * @param password the password; empty for none
 */
record RedisCredentials(String user, String password) {
    /** Never shows the password. */
    @Override
    public String toString() {
        return user;
    }
}
