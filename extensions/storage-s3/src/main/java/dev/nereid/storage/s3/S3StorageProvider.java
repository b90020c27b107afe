package dev.nereid.storage.s3;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.storage.ModelStorage;
import dev.nereid.spi.storage.StorageContext;
import dev.nereid.spi.storage.StorageProvider;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;

/** Opens model repositories in S3. Immutable. */
public final class S3StorageProvider implements StorageProvider {
    /** The variable of the directory for local copies, as on the reference server. */
    private static final String MOUNT_DIRECTORY = "TRITON_AWS_MOUNT_DIRECTORY";

    @Override
    public String scheme() {
        return "s3";
    }

    @Override
    public ModelStorage open(StorageContext context) {
        Map<String, String> environment = context.environment();
        S3Location location = S3Location.parse(context.url());
        S3Credentials credentials = S3Credentials.of(context.url(), environment);
        Optional<Path> copies = localDirectory(environment.getOrDefault(MOUNT_DIRECTORY, ""));
        return new S3Storage(S3Clients.create(location, credentials, provider(context, credentials)), location, copies);
    }

    private static AwsCredentialsProvider provider(StorageContext context, S3Credentials credentials) {
        String file = context.environment().getOrDefault(S3Credentials.CREDENTIAL_PATH, "");
        return file.isEmpty()
                ? S3Clients.provider(credentials)
                : new FileCredentials(
                        Path.of(file),
                        credentials,
                        () -> S3Credentials.of(context.url(), context.environment()),
                        S3Clients::provider,
                        context.logger());
    }

    private static Optional<Path> localDirectory(String text) {
        if (text.isEmpty()) {
            return Optional.empty();
        }
        try {
            Path directory = Path.of(text);
            if (Files.isDirectory(directory)) {
                return Optional.of(directory);
            }
        } catch (InvalidPathException e) {
            // reported below
        }
        throw new BackendException(
                ErrorCode.INVALID_ARGUMENT, MOUNT_DIRECTORY + ": '" + text + "' (expected: an existing directory)");
    }
}
