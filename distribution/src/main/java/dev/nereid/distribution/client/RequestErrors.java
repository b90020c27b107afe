package dev.nereid.distribution.client;

import io.vertx.core.json.DecodeException;
import io.vertx.core.json.JsonObject;
import java.io.IOException;
import java.net.ConnectException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpTimeoutException;
import java.nio.channels.UnresolvedAddressException;
import java.time.Duration;
import javax.net.ssl.SSLException;

/** Describes failed requests: the problem, its place, and the remedy. Static functions only. */
final class RequestErrors {
    private static final String START = "start a server with: nereid serve --model-repository=DIR;"
            + " or name the address of another one with --url";
    private static final String NO_SERVER = " (expected: the HTTP port of an inference server; see --url)";

    /** The beginning of the refusal of a server with models that clients do not control. */
    private static final String NOT_EXPLICIT = "explicit model load / unload is not allowed";

    private static final int MAX_TEXT = 2000;

    private RequestErrors() {}

    /** Describes a request without a response. */
    static RequestException notSent(ClientOptions options, IOException failure) {
        String text = switch (failure) {
            case ConnectException e -> "no server reachable: " + reason(e) + "; " + START;
            case HttpTimeoutException e ->
                "no response within " + options.timeout().toSeconds()
                        + " s (--timeout-secs allows more; the server may continue with the request)";
            case SSLException e ->
                "no TLS connection: " + e.getMessage() + " (expected: a certificate that this Java trusts; see"
                        + " NEREID_JAVA_OPTIONS=-Djavax.net.ssl.trustStore=FILE)";
            default -> "request failed: " + reason(failure);
        };
        return new RequestException(options.url() + ": " + text, failure);
    }

    /** Describes a server that does not respond to a request, or to one for its health. */
    static RequestException silent(URI url, Duration waited, IOException failure) {
        return new RequestException(
                url + ": no response within " + waited.toSeconds()
                        + " s, and none to /v2/health/live (expected: the HTTP"
                        + " port of an inference server; one that is blocked logs 'event loop is blocked')",
                failure);
    }

    /** Describes a response that is no success. */
    static RequestException refused(URI url, int status, String body) {
        String error = error(body);
        if (error.isEmpty()) {
            return new RequestException(url + ": status " + status + " without an error text" + NO_SERVER);
        }
        return new RequestException(url + ": " + error + hint(status, error));
    }

    /** Describes a successful response that is not what the request asks for. */
    static RequestException unexpected(URI url) {
        return new RequestException(url + ": a response of another form" + NO_SERVER);
    }

    private static String hint(int status, String error) {
        if (status == HttpURLConnection.HTTP_UNAVAILABLE && error.startsWith(NOT_EXPLICIT)) {
            return "; start the server with --model-control-mode=explicit";
        }
        return switch (status) {
            case HttpURLConnection.HTTP_FORBIDDEN ->
                "; give the header of --http-restricted-api with --header=NAME:VALUE";
            case HttpURLConnection.HTTP_NOT_FOUND -> error.equals("Not Found") ? NO_SERVER : "";
            default -> "";
        };
    }

    /** Returns the error text of a response on one line; empty if there is none. */
    private static String error(String body) {
        try {
            Object error = new JsonObject(body).getValue("error");
            String text = error instanceof String found ? found : "";
            return text.substring(0, Math.min(text.length(), MAX_TEXT))
                    .replaceAll("[\\s\\p{Cntrl}]+", " ")
                    .strip();
        } catch (DecodeException e) {
            return "";
        }
    }

    private static String reason(IOException failure) {
        if (failure.getCause() instanceof UnresolvedAddressException
                || (failure.getCause() != null
                        && failure.getCause().getCause() instanceof UnresolvedAddressException)) {
            return "the name of the host is unknown";
        }
        String message = failure.getMessage();
        if (message == null && failure.getCause() != null) {
            message = failure.getCause().getMessage();
        }
        return message == null ? failure.getClass().getSimpleName() : message;
    }
}
