package dev.nereid.distribution.flags;

import dev.nereid.distribution.client.ClientOptions;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.http.HttpRequest;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/** Flags of requests to a running server. Written by the command line reader, then only read. */
public final class ClientFlags {
    private static final FlagValue<URI> URL =
            new FlagValue<>("URL", "http://HOST[:PORT] or https://HOST[:PORT]", ClientFlags::url);
    private static final FlagValue<Map.Entry<String, String>> HEADER =
            new FlagValue<>("NAME:VALUE", "the name of a header, a colon and its value", ClientFlags::header);

    private final Map<String, String> headers = new HashMap<>();
    private URI url = URI.create("http://localhost:8000");
    private Duration timeout;

    /** Creates the flags of a command, with the default of the time that a request may take. */
    public ClientFlags(Duration timeout) {
        this.timeout = timeout;
    }

    /** Returns the flags of a command that reads: a server that works responds at once. */
    public static ClientFlags ofRead() {
        return new ClientFlags(Duration.ofSeconds(10));
    }

    /** Returns the flags of a command that loads or unloads, which may take minutes. */
    public static ClientFlags ofChange() {
        return new ClientFlags(Duration.ofMinutes(10));
    }

    public void declare(Flags flags) {
        flags.add("--url", URL, url, v -> url = v).help("The HTTP address of the server.");
        flags.add("--header", HEADER, value -> headers.put(value.getKey(), value.getValue()))
                .help("A header of each request, such as that of --http-restricted-api. May be given several times.");
        flags.add("--timeout-secs", FlagValue.COUNT, v -> timeout = Duration.ofSeconds(v))
                .help("How long a request may take. Default: " + timeout.toSeconds() + ".");
    }

    public ClientOptions options() {
        return new ClientOptions(url, headers, timeout);
    }

    private static Optional<URI> url(String text) {
        try {
            URI read = new URI(text.replaceFirst("/+$", ""));
            boolean isHttp = "http".equalsIgnoreCase(read.getScheme()) || "https".equalsIgnoreCase(read.getScheme());
            boolean isPlain = read.getHost() != null && read.getRawQuery() == null && read.getRawFragment() == null;
            return isHttp && isPlain && read.getPort() <= FlagValue.MAX_PORT ? Optional.of(read) : Optional.empty();
        } catch (URISyntaxException e) {
            return Optional.empty();
        }
    }

    private static Optional<Map.Entry<String, String>> header(String text) {
        int colon = text.indexOf(':');
        if (colon < 1) {
            return Optional.empty();
        }
        String name = text.substring(0, colon);
        String value = text.substring(colon + 1).strip();
        try {
            HttpRequest.newBuilder().header(name, value); // refuses headers that clients must not set
            return Optional.of(Map.entry(name, value));
        } catch (IllegalArgumentException e) {
            return Optional.empty();
        }
    }
}
