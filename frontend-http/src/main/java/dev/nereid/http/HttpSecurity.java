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
    public HttpSecurity {
        requireNonNull(access, "access");
        requireNonNull(tls, "tls");
    }
}
