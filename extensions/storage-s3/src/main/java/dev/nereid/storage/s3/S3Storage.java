package dev.nereid.storage.s3;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.storage.ModelStorage;
import dev.nereid.spi.storage.StoragePage;
import dev.nereid.spi.storage.StoredObject;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import software.amazon.awssdk.core.ResponseInputStream;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.GetObjectRequest;
import software.amazon.awssdk.services.s3.model.GetObjectResponse;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Request;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Response;
import software.amazon.awssdk.services.s3.model.S3Object;

/** The objects of a model repository in S3. Owns its client. Immutable; safe for use by any thread. */
final class S3Storage implements ModelStorage {
    private static final int BUFFER_BYTES = 1 << 16;

    private final S3Client client;
    private final S3Location location;
    private final Optional<Path> localDirectory;

    S3Storage(S3Client client, S3Location location, Optional<Path> localDirectory) {
        this.client = client;
        this.location = location;
        this.localDirectory = localDirectory;
    }

    @Override
    public StoragePage list(String prefix, String continuation) {
        ListObjectsV2Request.Builder request =
                ListObjectsV2Request.builder().bucket(location.bucket()).prefix(location.key(prefix));
        if (!continuation.isEmpty()) {
            request.continuationToken(continuation);
        }
        ListObjectsV2Response page;
        try {
            page = client.listObjectsV2(request.build());
        } catch (SdkException e) {
            throw S3Errors.of(location, e);
        }
        List<StoredObject> objects = new ArrayList<>();
        for (S3Object object : page.contents()) {
            // An empty object for the directory of the repository is none of a model.
            if (!object.key().equals(location.prefix())) {
                objects.add(object(object));
            }
        }
        String next = page.nextContinuationToken();
        return new StoragePage(objects, next == null || !Boolean.TRUE.equals(page.isTruncated()) ? "" : next);
    }

    @Override
    public void read(StoredObject object, OutputStream content) {
        GetObjectRequest request = GetObjectRequest.builder()
                .bucket(location.bucket())
                .key(location.key(object.key()))
                .ifMatch(object.etag())
                .build();
        try (ResponseInputStream<GetObjectResponse> stream = client.getObject(request)) {
            boolean complete = false;
            try {
                copy(stream, content);
                complete = true;
            } finally {
                if (!complete) {
                    stream.abort(); // a close would read the rest
                }
            }
        } catch (SdkException e) {
            throw S3Errors.of(location, e);
        } catch (IOException e) {
            throw S3Errors.ofStream(location, e);
        }
    }

    @Override
    public Optional<Path> localDirectory() {
        return localDirectory;
    }

    @Override
    public void close() {
        client.close();
    }

    private StoredObject object(S3Object object) {
        String key = object.key();
        if (!key.startsWith(location.prefix())
                || object.eTag() == null
                || object.eTag().isEmpty()) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    location + ": the listing has an object outside of '" + location.prefix() + "', or without ETag");
        }
        return new StoredObject(
                key.substring(location.prefix().length()), object.size(), object.eTag(), object.lastModified());
    }

    private static void copy(ResponseInputStream<GetObjectResponse> source, OutputStream target) throws IOException {
        byte[] buffer = new byte[BUFFER_BYTES];
        for (int read = source.read(buffer); read >= 0; read = source.read(buffer)) {
            target.write(buffer, 0, read);
        }
    }
}
