package dev.nereid.distribution.process;

/**
 * Address and port of a listening socket. Immutable.
 *
 * @param host the configured name or address
 * @param isEncrypted whether it uses TLS
 */
public record Endpoint(String host, int port, boolean isEncrypted) {
    private static final String ANY_V4 = "0.0.0.0";
    private static final String ANY_V6 = "::";

    public Endpoint(String host, int port) {
        this(host, port, false);
    }

    /** Returns the base URL for HTTP clients. */
    public String url() {
        return (isEncrypted ? "https://" : "http://") + authority();
    }

    /** Returns host and port as in a URL. */
    public String authority() {
        return (host.indexOf(':') < 0 ? host : "[" + host + "]") + ":" + port;
    }

    /** Returns the endpoint as reachable from this machine. */
    public Endpoint local() {
        return isOpenToAll() ? new Endpoint("127.0.0.1", port, isEncrypted) : this;
    }

    /** Returns whether the port is bound to all addresses. */
    boolean isOpenToAll() {
        return host.equals(ANY_V4) || host.equals(ANY_V6);
    }

    /** Returns whether the port is reachable from this machine only. */
    public boolean isLocalOnly() {
        return host.startsWith("127.") || host.equals("localhost") || host.equals("::1");
    }
}
