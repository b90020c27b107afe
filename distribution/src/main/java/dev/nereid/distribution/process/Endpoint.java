package dev.nereid.distribution.process;

/**
 * Address and port of a listening socket. Immutable.
 *
 * @param host the name or number that it was given
 * @param port its number
 * @param isEncrypted whether it speaks TLS
 */
public record Endpoint(String host, int port, boolean isEncrypted) {
    private static final String ANY_V4 = "0.0.0.0";
    private static final String ANY_V6 = "::";

    /** Names a port without encryption. */
    public Endpoint(String host, int port) {
        this(host, port, false);
    }

    /** Returns the address as a client of HTTP writes it. */
    public String url() {
        return (isEncrypted ? "https://" : "http://") + authority();
    }

    /** Returns host and port as in a URL. */
    public String authority() {
        return (host.indexOf(':') < 0 ? host : "[" + host + "]") + ":" + port;
    }

    /** Returns the endpoint as a client on this machine reaches it. */
    public Endpoint local() {
        return isOpenToAll() ? new Endpoint("127.0.0.1", port, isEncrypted) : this;
    }

    /** Says whether every machine that reaches this one reaches the port. */
    boolean isOpenToAll() {
        return host.equals(ANY_V4) || host.equals(ANY_V6);
    }

    /** Says whether the port is out of reach for other machines. */
    public boolean isLocalOnly() {
        return host.startsWith("127.") || host.equals("localhost") || host.equals("::1");
    }
}
