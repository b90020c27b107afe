package dev.nereid.http.control;

import dev.nereid.api.memory.SharedMemory;
import dev.nereid.http.json.JsonErrors;
import dev.nereid.http.json.JsonFields;
import dev.nereid.http.json.JsonNumber;
import dev.nereid.http.json.JsonReader;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;

/** Reads the body of a shared memory register request. Confined to one thread. */
final class SharedMemoryRegisterRequest {
    private final String region;
    private final JsonReader json;
    private final int root;
    private final JsonNumber number = new JsonNumber();

    SharedMemoryRegisterRequest(String region, MemorySegment body) {
        this.region = region;
        this.json = new JsonReader(body);
        this.root = JsonFields.root(json);
    }

    /** Reads the key, offset and size of POSIX shared memory, and registers it. */
    void registerSystem(SharedMemory memory) {
        String key = string("key");
        int offsetAt = JsonFields.find(json, root, "offset");
        long offset = offsetAt == JsonFields.ABSENT ? 0 : unsigned(offsetAt, "offset");
        long byteSize = unsigned(require("byte_size"), "byte_size");
        memory.register(region, key, offset, byteSize);
    }

    /**
     * Reads the handle, device and size of GPU memory, and registers it. An invalid handle is registered as an empty
     * one: the server refuses it, after checks that take precedence.
     */
    void registerCuda(SharedMemory memory) {
        int handle = require("raw_handle");
        int text = JsonFields.find(json, handle, "b64");
        if (text == JsonFields.ABSENT) {
            throw JsonErrors.value(
                    "attempt to access non-existing object member 'b64'", "raw_handle.b64", "a string", "nothing");
        }
        json.moveTo(text);
        if (json.peek() != '"') {
            throw JsonErrors.value(JsonErrors.NOT_STRING, "raw_handle.b64", "a string", json.describeValue());
        }
        ByteBuffer bytes;
        try {
            bytes = JsonFields.readBase64(json);
        } catch (IllegalArgumentException e) {
            bytes = ByteBuffer.allocate(0);
        }
        long byteSize = unsigned(require("byte_size"), "byte_size");
        long device = unsigned(require("device_id"), "device_id");
        memory.registerCuda(region, bytes.asReadOnlyBuffer(), device, byteSize);
    }

    private int require(String name) {
        int at = JsonFields.find(json, root, name);
        if (at == JsonFields.ABSENT) {
            throw JsonFields.invalid("Shared memory register request has no '" + name + "' field");
        }
        return at;
    }

    private String string(String name) {
        json.moveTo(require(name));
        if (json.peek() != '"') {
            throw JsonErrors.value(JsonErrors.NOT_STRING, name, "a string", json.describeValue());
        }
        return json.readString();
    }

    private long unsigned(int at, String name) {
        json.moveTo(at);
        if (!json.readNumber(number) || !number.isUnsigned()) {
            json.moveTo(at);
            throw JsonErrors.value(
                    JsonErrors.NOT_UNSIGNED,
                    name,
                    JsonErrors.expectedFor(JsonErrors.NOT_UNSIGNED),
                    json.describeValue());
        }
        return number.bits();
    }
}
