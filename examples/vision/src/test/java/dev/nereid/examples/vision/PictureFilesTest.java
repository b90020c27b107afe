package dev.nereid.examples.vision;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeRequest;
import java.lang.foreign.Arena;
import java.util.List;
import org.junit.jupiter.api.Test;

final class PictureFilesTest {
    /** The size is checked by the tensor: a copy of it would not fit the heap. */
    @Test
    void refusesFilesThatAreTooLargeBeforeTheyAreCopied() {
        try (Arena arena = Arena.ofConfined()) {
            Tensor huge = Tensor.of(DataType.BYTES, Shape.of(2), arena.allocate(2 * (4 + 100) + 1));
            FakeRequest request = new FakeRequest(1, List.of()).with("IMAGE", huge);

            assertThatThrownBy(() -> PictureFiles.read(request, "IMAGE", 100))
                    .isInstanceOf(BackendException.class)
                    .hasMessage("image: 209 bytes (expected: at most 100 for each, by the parameter max_bytes)");
        }
    }

    @Test
    void readsFilesUpToTheLimit() {
        try (Arena arena = Arena.ofConfined()) {
            Tensor files = Tensor.of(DataType.BYTES, Shape.of(1), arena.allocate(4)); // the length, 0
            FakeRequest request = new FakeRequest(1, List.of()).with("IMAGE", files);

            assertThat(PictureFiles.read(request, "IMAGE", 1)).hasSize(1);
        }
    }
}
