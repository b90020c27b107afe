package dev.nereid.http;

import dev.nereid.api.Quoted;
import dev.nereid.api.SharedMemory;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;

/** The body of a request to register memory. Confined to the thread that reads it. */
final class RegisterRequest {
    private final String region;
    private final JsonReader json;
    private final int root;
    private final JsonNumber number = new JsonNumber();

    /** Checks the text of a request to register memory under a name. */
    RegisterRequest(String region, MemorySegment body) {
        this.region = region;
        this.json = new JsonReader(body);
        this.root = JsonFields.root(json);
    }

    /** Reads what POSIX shared memory is meant, and registers it. */
    void registerSystem(SharedMemory memory) {
        String key = string(require("key"));
        int offsetAt = JsonFields.find(json, root, "offset");
        long offset = offsetAt == JsonFields.ABSENT ? 0 : unsigned(offsetAt);
        long byteSize = unsigned(require("byte_size"));
        if (offset < 0 || byteSize < 0) {
            throw JsonFields.invalid(
                    "failed to register shared memory region '" + Quoted.text(region) + "': invalid args");
        }
        memory.register(region, key, offset, byteSize);
    }

    /**
     * Reads what memory of a graphics processor is meant, and registers it. A handle that is none is for the server to
     * refuse, which has other reasons that come first.
     */
    void registerCuda(SharedMemory memory) {
        int handle = require("raw_handle");
        int text = JsonFields.find(json, handle, "b64");
        if (text == JsonFields.ABSENT) {
            throw JsonFields.internal("attempt to access non-existing object member 'b64'");
        }
        json.moveTo(text);
        if (json.peek() != '"') {
            throw JsonFields.internal(JsonFields.NOT_STRING);
        }
        ByteBuffer bytes;
        try {
            bytes = ControlRequests.decode(json);
        } catch (IllegalArgumentException e) {
            bytes = ByteBuffer.allocate(0);
        }
        long byteSize = unsigned(require("byte_size"));
        long device = unsigned(require("device_id"));
        memory.registerCuda(region, bytes.asReadOnlyBuffer(), device, byteSize);
    }

    private int require(String name) {
        int at = JsonFields.find(json, root, name);
        if (at == JsonFields.ABSENT) {
            throw JsonFields.invalid("Shared memory register request has no '" + name + "' field");
        }
        return at;
    }

    private String string(int at) {
        json.moveTo(at);
        if (json.peek() != '"') {
            throw JsonFields.internal(JsonFields.NOT_STRING);
        }
        return json.readString();
    }

    private long unsigned(int at) {
        json.moveTo(at);
        if (!json.readNumber(number) || !number.isUnsigned()) {
            throw JsonFields.internal(JsonFields.NOT_UNSIGNED);
        }
        return number.bits();
    }
}
