package dev.nereid.http;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.frontend.ApiAccess;
import dev.nereid.api.tls.TlsFiles;
import java.util.Optional;

/**
 * Access restrictions and TLS of the HTTP front end. Immutable.
 *
 * @param access who may use which part of the protocol
 * @param tls the files of TLS; empty if connections are not encrypted
 */
public record HttpSecurity(ApiAccess access, Optional<TlsFiles> tls) {
    /** Everybody may do everything, in plain text. */
    public static final HttpSecurity NONE = new HttpSecurity(ApiAccess.OPEN, Optional.empty());

    /** Checks the components. */
    public HttpSecurity {
        requireNonNull(access, "access");
        requireNonNull(tls, "tls");
    }

    /**
     * Returns the same security with other access.
     *
     * @param changed who may use which part of the protocol
     * @return the changed security
     */
    public HttpSecurity withAccess(ApiAccess changed) {
        return new HttpSecurity(changed, tls);
    }

    /**
     * Returns the same security with encryption.
     *
     * @param changed by which files
     * @return the changed security
     */
    public HttpSecurity withTls(TlsFiles changed) {
        return new HttpSecurity(access, Optional.of(changed));
    }
}
