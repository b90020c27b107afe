package dev.nereid.storage.s3;

import dev.nereid.spi.BackendException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import software.amazon.awssdk.auth.credentials.AwsCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;

/**
 * The credentials of a file, which is read again when it has changed. Safe for use by any thread.
 *
 * <p>A file that is wrong, as one that is just being written, changes nothing; the log says so once for each change.
 */
final class FileCredentials implements AwsCredentialsProvider {
    /** Reads the credentials of the file. */
    @FunctionalInterface
    interface Reader {
        S3Credentials read();
    }

    private final Path file;
    private final Reader reader;
    private final Function<S3Credentials, AwsCredentialsProvider> providers;
    private final System.Logger logger;
    private final ReentrantLock lock = new ReentrantLock();

    /** Stamp of the file that the provider was created from; guarded by the lock, as the provider. */
    private List<Object> stamp;

    private AwsCredentialsProvider provider;

    /**
     * Creates the credentials.
     *
     * @param reader reads it again
     * @param providers creates the provider of a content
     * @param logger reports changes
     */
    FileCredentials(
            Path file,
            S3Credentials first,
            Reader reader,
            Function<S3Credentials, AwsCredentialsProvider> providers,
            System.Logger logger) {
        this.file = file;
        this.reader = reader;
        this.providers = providers;
        this.logger = logger;
        stamp = stamp();
        provider = providers.apply(first);
    }

    @Override
    public AwsCredentials resolveCredentials() {
        return current().resolveCredentials(); // which may send a request
    }

    private AwsCredentialsProvider current() {
        lock.lock();
        try {
            return read();
        } finally {
            lock.unlock();
        }
    }

    /** Reads the file if it has changed. Called with the lock. */
    private AwsCredentialsProvider read() {
        try {
            List<Object> now = stamp();
            if (!now.equals(stamp)) {
                stamp = now;
                provider = providers.apply(reader.read());
                logger.log(System.Logger.Level.INFO, "credentials of model repositories were read again");
            }
        } catch (RuntimeException e) {
            logger.log(
                    System.Logger.Level.WARNING,
                    "credentials of model repositories are not changed: {0}",
                    e instanceof BackendException
                            ? e.getMessage()
                            : e.getClass().getSimpleName());
        }
        return provider;
    }

    /** Describes the file so that a change of it changes the list. */
    private List<Object> stamp() {
        try {
            BasicFileAttributes attributes = Files.readAttributes(file, BasicFileAttributes.class);
            return List.of(
                    attributes.lastModifiedTime(),
                    attributes.size(),
                    Objects.requireNonNullElse(attributes.fileKey(), ""));
        } catch (IOException e) {
            return List.of();
        }
    }
}
