package dev.nereid.repository.storage;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class StorageOptionsTest {
    @Test
    void countsARepositoryOnceWithASlashAndWithout() {
        StorageOptions options = new StorageOptions(
                List.of("s3://b/x", "s3://b/y/", "s3://b/x/", "s3://b/y", "s3://b"),
                List.of(),
                Map.of(),
                Path.of("copies"),
                StorageLimits.DEFAULT);

        assertThat(options.urls()).containsExactly("s3://b/x", "s3://b/y/", "s3://b");
    }
}
