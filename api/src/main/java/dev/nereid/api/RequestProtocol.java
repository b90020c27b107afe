package dev.nereid.api;

/** The protocol over which a request reached the server. */
public enum RequestProtocol {
    /** The HTTP port. */
    HTTP("http"),
    /** The gRPC port. */
    GRPC("grpc"),
    /** The API for programs that embed the server. */
    EMBEDDED("embedded");

    private final String label;

    RequestProtocol(String label) {
        this.label = label;
    }

    /**
     * Returns the name of the protocol in metrics.
     *
     * @return the name, in lower case
     */
    public String label() {
        return label;
    }
}
