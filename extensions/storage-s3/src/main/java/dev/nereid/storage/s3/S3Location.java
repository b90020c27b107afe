package dev.nereid.storage.s3;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.net.URI;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Location of a model repository in S3. Immutable.
 *
 * <p>The forms are the same as on the reference server: {@code s3://bucket/path}, {@code s3://host:port/bucket/path} by
 * HTTP, and {@code s3://http://host:port/bucket/path} or {@code s3://https://host:port/bucket/path}.
 *
 * @param endpoint the address of the store; empty for the address of Amazon's region
 * @param prefix the beginning of all keys of the repository: empty, or a path with a slash at its end
 */
record S3Location(Optional<URI> endpoint, String bucket, String prefix) {
    private static final String SCHEME = "s3://";
    private static final String HOST = "[0-9A-Za-z.\\-]+|\\[[0-9A-Fa-f:.]+]";
    private static final Pattern ENDPOINT = Pattern.compile(
            "(?:(https?)://+(" + HOST + ")(?::([0-9]{1,5}))?|(" + HOST + "):([0-9]{1,5}))/+(.+)", Pattern.DOTALL);
    private static final Pattern BUCKET = Pattern.compile("[0-9A-Za-z._\\-]{1,255}");
    private static final int MAX_PORT = 65_535;

    /** Reads the URL of a repository. */
    static S3Location parse(String url) {
        if (!url.startsWith(SCHEME)) {
            throw wrong(url);
        }
        String rest = url.substring(SCHEME.length());
        Matcher custom = ENDPOINT.matcher(rest);
        if (!custom.matches()) {
            return inBucket(url, Optional.empty(), rest);
        }
        boolean plain = custom.group(4) != null;
        String scheme = plain ? "http" : custom.group(1);
        String host = plain ? custom.group(4) : custom.group(2);
        String port = plain ? custom.group(5) : custom.group(3);
        if (port != null && (Integer.parseInt(port) < 1 || Integer.parseInt(port) > MAX_PORT)) {
            throw wrong(url);
        }
        try {
            URI endpoint = URI.create(scheme + "://" + host + (port == null ? "" : ":" + port));
            return inBucket(url, Optional.of(endpoint), custom.group(6));
        } catch (IllegalArgumentException e) {
            throw wrong(url);
        }
    }

    /** Returns the key of an object in the bucket. */
    String key(String relative) {
        return prefix + relative;
    }

    /** Returns the bucket and its address, for errors. */
    @Override
    public String toString() {
        return "bucket '" + bucket + "'" + endpoint.map(uri -> " at " + uri).orElse("");
    }

    private static S3Location inBucket(String url, Optional<URI> endpoint, String text) {
        String path = text.replaceAll("/{2,}", "/").replaceAll("^/|/$", "");
        int slash = path.indexOf('/');
        String bucket = slash < 0 ? path : path.substring(0, slash);
        if (!BUCKET.matcher(bucket).matches() || path.chars().anyMatch(Character::isISOControl)) {
            throw wrong(url);
        }
        return new S3Location(endpoint, bucket, slash < 0 ? "" : path.substring(slash + 1) + "/");
    }

    private static BackendException wrong(String url) {
        return new BackendException(
                ErrorCode.INVALID_ARGUMENT,
                "URL '" + url + "' (expected: s3://BUCKET[/PATH], s3://HOST:PORT/BUCKET[/PATH],"
                        + " s3://http://HOST:PORT/BUCKET[/PATH] or s3://https://HOST:PORT/BUCKET[/PATH])");
    }
}
