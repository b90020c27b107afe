package dev.nereid.distribution.client;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;

/**
 * Sends control requests to a running server over HTTP. Blocks until the response. Owned by one command.
 *
 * <p>A load may take minutes. If a response takes longer than a few seconds, the client asks for the health of the
 * server, and gives up if there is no response to that either.
 */
public final class ServerClient implements AutoCloseable {
    private static final Duration MAX_CONNECT_TIME = Duration.ofSeconds(10);

    /** The time without a response before the client asks for the health, and the time that this may take. */
    private static final Duration MAX_SILENCE = Duration.ofSeconds(5);

    private static final String LIVE = "/v2/health/live";
    private static final int MAX_RESPONSE_BYTES = 64 << 20;
    private static final int OK = 200;
    private static final String REPOSITORY = "/v2/repository/";
    private static final Pattern SEGMENT = Pattern.compile("[\\w.~!$&'()*+,;=:@-]+");

    private final ClientOptions options;
    private final Duration maxSilence;
    private final HttpClient http;

    public ServerClient(ClientOptions options) {
        this(options, MAX_SILENCE);
    }

    /** Creates a client with another time before the request for health. */
    ServerClient(ClientOptions options, Duration maxSilence) {
        this.options = options;
        this.maxSilence = maxSilence;
        http = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .connectTimeout(
                        options.timeout().compareTo(MAX_CONNECT_TIME) < 0 ? options.timeout() : MAX_CONNECT_TIME)
                .build();
    }

    /** Returns the server's index of models: JSON as the server sends it. */
    public String index() throws RequestException, InterruptedException {
        return send(request(REPOSITORY + "index").POST(BodyPublishers.ofString("{}")));
    }

    /** Loads a model, or loads it again. Returns when it is ready. */
    public void load(String model, LoadRequest load) throws RequestException, InterruptedException {
        HttpRequest.BodyPublisher body;
        try {
            body = load.body();
        } catch (IOException e) {
            throw new RequestException(e + " (expected: a readable file)", e);
        }
        send(request(REPOSITORY + "models/" + segment(model) + "/load").POST(body));
    }

    /** Unloads a model, which completes the requests that it has after this method returns. */
    public void unload(String model, boolean dependents) throws RequestException, InterruptedException {
        String body = "{\"parameters\":{\"unload_dependents\":" + dependents + "}}";
        send(request(REPOSITORY + "models/" + segment(model) + "/unload").POST(BodyPublishers.ofString(body)));
    }

    /** Returns the configuration of a model: JSON as the server sends it. */
    public String config(String model, OptionalLong version) throws RequestException, InterruptedException {
        String ofVersion = version.isPresent() ? "/versions/" + version.getAsLong() : "";
        return send(
                request("/v2/models/" + segment(model) + ofVersion + "/config").GET());
    }

    /** Returns the failure of a request with a successful response of another form than expected. */
    public RequestException unexpectedResponse() {
        return RequestErrors.unexpected(options.url());
    }

    private HttpRequest.Builder request(String path) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(options.url() + path))
                .timeout(options.timeout())
                .header("Content-Type", "application/json");
        options.headers().forEach(request::setHeader);
        return request;
    }

    private String send(HttpRequest.Builder request) throws RequestException, InterruptedException {
        HttpResponse<String> response;
        try {
            response = await(http.sendAsync(
                    request.build(),
                    BodyHandlers.limiting(BodyHandlers.ofString(StandardCharsets.UTF_8), MAX_RESPONSE_BYTES)));
        } catch (IOException e) {
            throw RequestErrors.notSent(options, e);
        }
        if (response.statusCode() != OK) {
            throw RequestErrors.refused(options.url(), response.statusCode(), response.body());
        }
        return response.body();
    }

    /** Waits for a response, as long as the server responds at all. Cancels the request otherwise. */
    private <T> T await(CompletableFuture<T> response) throws IOException, RequestException, InterruptedException {
        try {
            try {
                return response.get(maxSilence.toNanos(), TimeUnit.NANOSECONDS);
            } catch (TimeoutException e) {
                checkHealth();
                return response.get();
            }
        } catch (ExecutionException e) {
            throw e.getCause() instanceof IOException failure ? failure : new IOException(e.getCause());
        } finally {
            response.cancel(true); // without effect after a response
        }
    }

    /** Fails if the server does not respond to a request for its health, whatever the response. */
    private void checkHealth() throws RequestException, InterruptedException {
        try {
            http.send(request(LIVE).timeout(maxSilence).GET().build(), BodyHandlers.discarding());
        } catch (IOException e) {
            throw RequestErrors.silent(options.url(), maxSilence.multipliedBy(2), e);
        }
    }

    /** Returns a name as one segment of a path, which servers take as it is, without decoding. */
    private static String segment(String name) throws RequestException {
        if (!SEGMENT.matcher(name).matches()) {
            throw new RequestException("model name: '" + name.replaceAll("\\p{Cntrl}", " ")
                    + "' (expected: letters, digits and -._~!$&'()*+,;=:@, since servers do not decode paths)");
        }
        return name;
    }

    /** Ends the connections, and requests that were interrupted. */
    @Override
    public void close() {
        http.shutdownNow();
    }
}
