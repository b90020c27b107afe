package dev.nereid.storage.s3;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Map;

/**
 * Credentials and region of a repository; empty texts leave them to the SDK. Immutable.
 *
 * @param keyId the access key id
 * @param secretKey the secret access key
 * @param sessionToken the session token of temporary credentials
 * @param profile the name of a profile in the files of the AWS command line
 */
record S3Credentials(String keyId, String secretKey, String sessionToken, String profile, String region) {
    /** The variable of the file of credentials, as on the reference server. */
    static final String CREDENTIAL_PATH = "TRITON_CLOUD_CREDENTIAL_PATH";

    private static final long MAX_FILE_BYTES = 1 << 20;

    /**
     * Returns the credentials of a repository: from the file of credentials if there is one, else from the environment.
     */
    static S3Credentials of(String url, Map<String, String> environment) {
        String path = environment.getOrDefault(CREDENTIAL_PATH, "");
        if (!path.isEmpty()) {
            return ofFile(url, path);
        }
        return new S3Credentials(
                environment.getOrDefault("AWS_ACCESS_KEY_ID", ""),
                environment.getOrDefault("AWS_SECRET_ACCESS_KEY", ""),
                environment.getOrDefault("AWS_SESSION_TOKEN", ""),
                environment.getOrDefault("AWS_PROFILE", ""),
                environment.getOrDefault("AWS_REGION", environment.getOrDefault("AWS_DEFAULT_REGION", "")));
    }

    /** Returns whether key and secret are given. */
    boolean hasKey() {
        return !keyId.isEmpty() && !secretKey.isEmpty();
    }

    /** Never shows a secret. */
    @Override
    public String toString() {
        return hasKey() ? "key" : profile.isEmpty() ? "default" : "profile " + profile;
    }

    private static S3Credentials ofFile(String url, String path) {
        Map<String, Map<String, String>> entries;
        try {
            Path file = Path.of(path);
            if (!Files.isRegularFile(file) || Files.size(file) > MAX_FILE_BYTES) {
                throw wrong(path, "no file of at most " + MAX_FILE_BYTES + " bytes");
            }
            entries = CredentialFile.read(Files.readAllBytes(file), "s3");
        } catch (IOException | InvalidPathException e) {
            // The message of a JSON error may hold a part of the file.
            throw wrong(path, e instanceof CredentialFile.FormatException format ? format.reason() : "cannot be read");
        }
        String name = null;
        for (String candidate : entries.keySet()) {
            if (url.startsWith(candidate) && (name == null || candidate.length() > name.length())) {
                name = candidate;
            }
        }
        Map<String, String> entry = name == null ? null : entries.get(name);
        if (entry == null) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "Cannot match credential for path  " + url + " (expected: an entry of \"s3\" in " + CREDENTIAL_PATH
                            + " whose name the URL begins with, or one with an empty name)");
        }
        return new S3Credentials(
                entry.getOrDefault("key_id", ""),
                entry.getOrDefault("secret_key", ""),
                entry.getOrDefault("session_token", ""),
                entry.getOrDefault("profile", ""),
                entry.getOrDefault("region", ""));
    }

    private static BackendException wrong(String path, String reason) {
        return new BackendException(
                ErrorCode.INVALID_ARGUMENT,
                CREDENTIAL_PATH + ": '" + path + "': " + reason
                        + " (expected: a JSON file as in {\"s3\": {\"s3://bucket\": {\"key_id\": …, \"secret_key\":"
                        + " …, \"region\": …}}})");
    }
}
