package dev.nereid.distribution.client;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpTimeoutException;
import java.nio.channels.UnresolvedAddressException;
import java.time.Duration;
import java.util.Map;
import javax.net.ssl.SSLHandshakeException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class RequestErrorsTest {
    private static final URI URL = URI.create("http://somewhere:8000");
    private static final String NO_SERVER = " (expected: the HTTP port of an inference server; see --url)";

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            404 | {"error":"Request for unknown model: 'm' is not found"} | Request for unknown model: 'm' is not found
            404 | {"error":"Not Found"} | Not Found (expected: the HTTP port of an inference server; see --url)
            503 | {"error":"explicit model load / unload is not allowed if polling is enabled"} | explicit model load / unload is not allowed if polling is enabled; start the server with --model-control-mode=explicit
            503 | {"error":"Server exiting"} | Server exiting
            403 | {"error":"This API is restricted, expecting header 'key'"} | This API is restricted, expecting header 'key'; give the header of --http-restricted-api with --header=NAME:VALUE
            400 | {"error":"load failed for model 'm':\\n version 1 \\u001b[31m;\\n"} | load failed for model 'm': version 1 [31m;
            200 | {"error":5} | status 200 without an error text (expected: the HTTP port of an inference server; see --url)
            502 | <html></html> | status 502 without an error text (expected: the HTTP port of an inference server; see --url)
            500 | [] | status 500 without an error text (expected: the HTTP port of an inference server; see --url)
            """)
    void describesARefusalInOneLine(int status, String body, String text) {
        assertThat(RequestErrors.refused(URL, status, body)).hasMessage("http://somewhere:8000: " + text);
    }

    @Test
    void limitsTheTextOfTheServer() {
        assertThat(RequestErrors.refused(URL, 400, "{\"error\":\"" + "x".repeat(1_000_000) + "\"}")
                        .getMessage())
                .hasSizeLessThan(2100);
        assertThat(RequestErrors.unexpected(URL)).hasMessage(URL + ": a response of another form" + NO_SERVER);
    }

    @Test
    void describesWhyARequestWasNotSent() {
        assertThat(notSent(new ConnectException("Connection refused")))
                .isEqualTo(URL + ": no server reachable: Connection refused; start a server with: nereid serve"
                        + " --model-repository=DIR; or name the address of another one with --url");
        assertThat(notSent((IOException) new ConnectException()
                        .initCause(new ConnectException().initCause(new UnresolvedAddressException()))))
                .startsWith(URL + ": no server reachable: the name of the host is unknown; start");
        assertThat(notSent(new HttpTimeoutException("request timed out")))
                .isEqualTo(URL + ": no response within 7 s (--timeout-secs allows more; the server may continue with"
                        + " the request)");
        assertThat(notSent(new SSLHandshakeException("unable to find valid certification path")))
                .startsWith(URL + ": no TLS connection: unable to find valid certification path (expected: ");
        assertThat(notSent(new IOException("HTTP/1.1 header parser received no bytes")))
                .isEqualTo(URL + ": request failed: HTTP/1.1 header parser received no bytes");
    }

    @Test
    void describesAServerThatIsSilent() {
        assertThat(RequestErrors.silent(URL, Duration.ofSeconds(10), new IOException("x")))
                .hasMessageStartingWith(URL + ": no response within 10 s, and none to /v2/health/live (expected: ");
    }

    private static String notSent(IOException failure) {
        return RequestErrors.notSent(new ClientOptions(URL, Map.of(), Duration.ofSeconds(7)), failure)
                .getMessage();
    }
}
