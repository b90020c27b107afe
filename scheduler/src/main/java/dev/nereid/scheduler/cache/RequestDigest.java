package dev.nereid.scheduler.cache;

import dev.nereid.api.NamedTensor;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.spi.ParameterValue;
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
 * Computes the cache key of a request. Confined to the making of one key.
 *
 * <p>The key stands for all that an answer may depend on: model and version, inputs with their types, shapes and bytes
 * in the order of their names, outputs wanted, priority, and parameters in the order of their names; not for id,
 * time-out or deadline, which say nothing of the answer. Every part of variable length has its length in front, and
 * every list its count, so that no two calls are the same row of bytes.
 *
 * <p>SHA-256, cut to 128 bits: with a hash that is merely fast, a client could make two calls of one key and so choose
 * the answers of others.
 */
public final class RequestDigest {
    /** How much of a tensor is shown to the digest at a time. */
    private static final long CHUNK = 1L << 20;

    private final MessageDigest digest;
    private final ByteBuffer number = ByteBuffer.allocate(Long.BYTES);

    private RequestDigest() {
        try {
            digest = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }

    /**
     * Makes the key of a call. Reads all inputs, which takes about a millisecond for a megabyte.
     *
     * @param call a call whose inputs lie in memory that Java code may read
     * @return the key
     */
    public static CacheKey of(CheckedRequest call) {
        RequestDigest digest = new RequestDigest();
        digest.add(call);
        return digest.key();
    }

    private void add(CheckedRequest call) {
        add(call.model());
        add(call.version());
        List<NamedTensor> inputs = new ArrayList<>(call.inputs());
        inputs.sort(Comparator.comparing(NamedTensor::name));
        add(inputs.size());
        for (NamedTensor input : inputs) {
            add(input.name());
            add(input.tensor());
        }
        add(call.outputs().names().size());
        call.outputs().names().forEach(this::add);
        add(call.options().priority());
        add(call.parameters().size());
        for (Map.Entry<String, ParameterValue> parameter : new TreeMap<>(call.parameters()).entrySet()) {
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

    /** Adds a value with its type. */
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
