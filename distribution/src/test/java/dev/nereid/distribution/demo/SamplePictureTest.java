package dev.nereid.distribution.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SamplePictureTest {
    @TempDir
    private Path directory;

    @Test
    void readsClassAndShareOfTheShape() throws IOException {
        // Four pixels: shape, outline, background, shape.
        ByteBuffer response = response("0.987600:5:star", 0.1f, 0.2f, 0.9f, 0, 0.8f, 0.3f, 0.1f, 1, 0.1f, 0.5f, 0, 0);

        assertThat(SamplePicture.result(response)).isEqualTo("star 0.9876, on 50 % of the picture");
    }

    @Test
    void refusesAResponseWithoutPixels() {
        assertThatThrownBy(() -> SamplePicture.result(response("0.5:5:star")))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("(expected: a class and pixels)");
    }

    @Test
    void sendsTheBytesOfTheFile() throws IOException {
        SamplePicture picture = SamplePicture.read(Files.write(directory.resolve("a.png"), new byte[] {1, 2, 3}));

        assertThat(picture.name()).isEqualTo("a.png");
        assertThat(picture.request().data()).isEqualTo(ByteBuffer.wrap(new byte[] {3, 0, 0, 0, 1, 2, 3}));
        assertThat(picture.request().json())
                .isEqualTo("{\"inputs\":[{\"name\":\"IMAGE\",\"datatype\":\"BYTES\",\"shape\":[1, 1],"
                        + "\"parameters\":{\"binary_data_size\":7}}],\"outputs\":[{\"name\":\"CLASSIFICATION\","
                        + "\"parameters\":{\"binary_data\":true,\"classification\":1}},{\"name\":\"SEGMENTATION\","
                        + "\"parameters\":{\"binary_data\":true}}]}");
        assertThat(picture.request()
                        .message()
                        .getOutputs(0)
                        .getParametersOrThrow("classification")
                        .getInt64Param())
                .isOne();
    }

    private static ByteBuffer response(String best, float... pixels) {
        byte[] text = best.getBytes(StandardCharsets.UTF_8);
        ByteBuffer response = ByteBuffer.allocate(Integer.BYTES + text.length + pixels.length * Float.BYTES)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(text.length)
                .put(text);
        for (float pixel : pixels) {
            response.putFloat(pixel);
        }
        return response.flip();
    }
}
