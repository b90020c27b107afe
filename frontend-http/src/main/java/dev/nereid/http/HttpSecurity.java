package dev.nereid.http;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.frontend.ApiAccess;
import dev.nereid.api.tls.TlsFiles;
import java.util.Optional;

/**
 * Access restrictions and TLS of the HTTP front end. Immutable.
 *
 * @param access the restrictions of API groups
 * @param tls the certificate files; empty for plain text
 */
public record HttpSecurity(ApiAccess access, Optional<TlsFiles> tls) {
    /** No restrictions, and plain text. */
    public static final HttpSecurity NONE = new HttpSecurity(ApiAccess.OPEN, Optional.empty());

    public HttpSecurity {
        requireNonNull(access, "access");
        requireNonNull(tls, "tls");
    }

    /**
     * Returns the same security with other access.
     *
     * @param newAccess the restrictions of API groups
     */
    public HttpSecurity withAccess(ApiAccess newAccess) {
        return new HttpSecurity(newAccess, tls);
    }

    /** Returns the same security with TLS. */
    public HttpSecurity withTls(TlsFiles files) {
        return new HttpSecurity(access, Optional.of(files));
    }
}
