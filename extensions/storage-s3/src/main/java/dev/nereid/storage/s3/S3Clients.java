package dev.nereid.storage.s3;

import java.time.Duration;
import java.util.Optional;
import software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProviderChain;
import software.amazon.awssdk.auth.credentials.AwsSessionCredentials;
import software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider;
import software.amazon.awssdk.auth.credentials.ProfileCredentialsProvider;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.exception.SdkClientException;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.regions.providers.AwsProfileRegionProvider;
import software.amazon.awssdk.regions.providers.AwsRegionProvider;
import software.amazon.awssdk.regions.providers.DefaultAwsRegionProviderChain;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.S3ClientBuilder;

/** Creates clients of S3. Static functions only. */
final class S3Clients {
    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(5);

    /** For a response, and for the next bytes of an object. */
    private static final Duration READ_TIMEOUT = Duration.ofSeconds(30);

    /** For a request with its retries, until an object begins to arrive. */
    private static final Duration CALL_TIMEOUT = Duration.ofMinutes(2);

    private S3Clients() {}

    /**
     * Creates a client, which sends nothing yet.
     *
     * @param credentials the region, and the credentials at first
     * @return the client, owned by the caller
     */
    static S3Client create(S3Location location, S3Credentials credentials, AwsCredentialsProvider provider) {
        S3ClientBuilder builder = S3Client.builder()
                .httpClientBuilder(UrlConnectionHttpClient.builder()
                        .connectionTimeout(CONNECT_TIMEOUT)
                        .socketTimeout(READ_TIMEOUT))
                .overrideConfiguration(
                        options -> options.apiCallTimeout(CALL_TIMEOUT).apiCallAttemptTimeout(READ_TIMEOUT))
                .credentialsProvider(provider)
                .region(region(location, credentials));
        if (location.endpoint().isPresent()) {
            // Such a store need not know the names of its buckets as hosts.
            builder.endpointOverride(location.endpoint().get()).forcePathStyle(true);
        } else {
            builder.crossRegionAccessEnabled(true);
        }
        return builder.build();
    }

    /** Keys, then a profile, then the SDK's default chain; where that finds none, a public bucket is assumed. */
    static AwsCredentialsProvider provider(S3Credentials credentials) {
        if (credentials.hasKey()) {
            AwsCredentials keys = credentials.sessionToken().isEmpty()
                    ? AwsBasicCredentials.create(credentials.keyId(), credentials.secretKey())
                    : AwsSessionCredentials.create(
                            credentials.keyId(), credentials.secretKey(), credentials.sessionToken());
            return StaticCredentialsProvider.create(keys);
        }
        if (!credentials.profile().isEmpty()) {
            return ProfileCredentialsProvider.create(credentials.profile());
        }
        return AwsCredentialsProviderChain.builder()
                .credentialsProviders(
                        DefaultCredentialsProvider.builder().build(), AnonymousCredentialsProvider.create())
                .reuseLastProviderEnabled(false) // the default chain may fail for a moment
                .build();
    }

    private static Region region(S3Location location, S3Credentials credentials) {
        if (!credentials.region().isEmpty()) {
            return Region.of(credentials.region());
        }
        // A store of one's own has no region; only Amazon's machines can be asked for theirs.
        AwsRegionProvider provider =
                location.endpoint().isPresent() ? new AwsProfileRegionProvider() : new DefaultAwsRegionProviderChain();
        try {
            return Optional.ofNullable(provider.getRegion()).orElse(Region.US_EAST_1);
        } catch (SdkClientException e) {
            return Region.US_EAST_1;
        }
    }
}
