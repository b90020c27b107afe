package dev.nereid.distribution.testing;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** A part of a recording with 8,000 samples a second, cut into chunks for the voice-activity detector. Immutable. */
public final class Recording {
    public static final int SAMPLES_PER_SECOND = 8_000;

    /** The samples of a chunk with those before it. */
    public static final int INPUT = 288;

    private static final int CONTEXT = 32;
    private static final int CHUNK = INPUT - CONTEXT;
    private static final int HEADER_BYTES = 44;
    private static final float FULL_SCALE = 1 << 15;

    /** Begins with the context of the first chunk: silence. */
    private final float[] samples;

    private Recording(float[] samples) {
        this.samples = samples;
    }

    /** Reads some chunks of a file of 16-bit samples, from a sample on. */
    public static Recording read(Path file, int from, int chunks) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
        float[] samples = new float[CONTEXT + chunks * CHUNK];
        for (int i = CONTEXT; i < samples.length; i++) {
            samples[i] = bytes.getShort(HEADER_BYTES + Short.BYTES * (from + i - CONTEXT)) / FULL_SCALE;
        }
        return new Recording(samples);
    }

    int chunks() {
        return (samples.length - CONTEXT) / CHUNK;
    }

    /** Returns a chunk behind the last samples of the one before it. */
    public float[] chunk(int number) {
        return Arrays.copyOfRange(samples, number * CHUNK, number * CHUNK + INPUT);
    }
}
