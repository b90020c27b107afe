package dev.nereid.scheduler.cache;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.cache.CacheKey;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Computes the {@link CacheKey} under which the response to a request is cached. Confined to the computation of one key.
 *
 * <p>The key covers everything on which a response may depend: model, version and load, inputs with their types, shapes and
 * bytes in the order of their names, requested outputs, priority, and parameters in the order of their names. It does
 * not cover id, timeout and deadline, which do not change the response. Every part of variable length is preceded by
 * its length, and every list by its count, so that different requests never produce the same bytes.
 *
 * <p>SHA-256, truncated to 128 bits: with a non-cryptographic hash, a client could create two requests of one key and
 * so choose the responses of others.
 */
public final class CacheKeyDigest {
    /** The number of bytes of a tensor in one update of the digest. */
    private static final long CHUNK = 1L << 20;

    private final MessageDigest digest;
    private final ByteBuffer number = ByteBuffer.allocate(Long.BYTES);

    private CacheKeyDigest() {
        try {
            digest = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }

    /** Computes the key of a request. Reads all inputs, which Java may read: about a millisecond for a megabyte. */
    public static CacheKey of(CheckedRequest request, String loadId) {
        CacheKeyDigest digest = new CacheKeyDigest();
        digest.add(loadId);
        digest.add(request);
        return digest.key();
    }

    private void add(CheckedRequest request) {
        add(request.model());
        add(request.version());
        List<NamedTensor> inputs = new ArrayList<>(request.inputs());
        inputs.sort(Comparator.comparing(NamedTensor::name));
        add(inputs.size());
        for (NamedTensor input : inputs) {
            add(input.name());
            add(input.tensor());
        }
        add(request.outputs().names().size());
        request.outputs().names().forEach(this::add);
        add(request.options().priority());
        add(request.parameters().size());
        for (Map.Entry<String, ParameterValue> parameter : new TreeMap<>(request.parameters()).entrySet()) {
            add(parameter.getKey());
            add(parameter.getValue());
        }
    }

    private void add(Tensor tensor) {
        add(tensor.type().name());
        Shape shape = tensor.shape();
        add(shape.rank());
        for (int i = 0; i < shape.rank(); i++) {
            add(shape.dim(i));
        }
        MemorySegment data = tensor.data();
        add(data.byteSize());
        for (long at = 0; at < data.byteSize(); at += CHUNK) {
            digest.update(
                    data.asSlice(at, Math.min(CHUNK, data.byteSize() - at)).asByteBuffer());
        }
    }

    private void add(ParameterValue value) {
        switch (value) {
            case ParameterValue.Bool(boolean truth) -> {
                add("bool");
                add(truth ? 1 : 0);
            }
            case ParameterValue.Int(long whole) -> {
                add("int");
                add(whole);
            }
            case ParameterValue.Real(double real) -> {
                add("real");
                add(Double.doubleToRawLongBits(real));
            }
            case ParameterValue.Text(String text) -> {
                add("text");
                add(text);
            }
        }
    }

    private void add(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        add(bytes.length);
        digest.update(bytes);
    }

    private void add(long value) {
        number.putLong(0, value);
        digest.update(number.array());
    }

    private CacheKey key() {
        ByteBuffer bytes = ByteBuffer.wrap(digest.digest());
        return new CacheKey(bytes.getLong(), bytes.getLong());
    }
}
