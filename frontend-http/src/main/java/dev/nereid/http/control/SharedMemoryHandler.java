package dev.nereid.http.control;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.memory.SharedMemory;
import dev.nereid.http.body.BodyLimits;
import dev.nereid.http.body.EventLoopExecutor;
import dev.nereid.http.body.JsonBodyReceiver;
import dev.nereid.http.json.JsonFields;
import io.vertx.core.Context;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpServerRequest;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.Function;

/** Handles status, register and unregister requests of system or CUDA shared memory. Confined to one event loop. */
public final class SharedMemoryHandler {
    private final InferenceServer server;
    private final SharedMemory memory;
    private final BodyLimits limits;
    private final EventLoopExecutor loop;
    private final boolean isCuda;

    /** Creates the handler of one event loop, for memory of GPUs if {@code isCuda}. */
    public SharedMemoryHandler(InferenceServer server, BodyLimits limits, Context context, boolean isCuda) {
        this.server = server;
        this.memory = server.sharedMemory();
        this.limits = limits;
        this.loop = new EventLoopExecutor(context);
        this.isCuda = isCuda;
    }

    /** Sends the status of a region, or of all regions if its name is empty. */
    public void status(HttpServerRequest request, String region) {
        receive(
                request,
                body -> JsonResponses.write(
                        isCuda ? json -> writeCuda(json, region) : json -> writeSystem(json, region)));
    }

    public void register(HttpServerRequest request, String region) {
        receive(request, body -> {
            register(body, region);
            return Buffer.buffer();
        });
    }

    /** Unregisters a region, or all regions if its name is empty. */
    public void unregister(HttpServerRequest request, String region) {
        receive(request, body -> {
            unregister(region);
            return Buffer.buffer();
        });
    }

    /** Receives a body and sends the result of the action, which runs on a worker: mapping and unmapping block. */
    private void receive(HttpServerRequest request, Function<MemorySegment, Buffer> action) {
        JsonBodyReceiver.receiveOnWorker(request, server, limits, loop, body -> {
            Buffer result = action.apply(body);
            return JsonBodyReceiver.Prepared.of(() -> JsonResponses.send(request.response(), result));
        });
    }

    private void writeSystem(JsonGenerator json, String name) throws IOException {
        json.writeStartArray();
        for (SharedMemory.Region region : name.isEmpty() ? memory.regions() : List.of(memory.region(name))) {
            json.writeStartObject();
            JsonResponses.writeString(json, "name", region.name());
            JsonResponses.writeString(json, "key", region.key());
            json.writeNumberField("offset", region.offset());
            json.writeNumberField("byte_size", region.byteSize());
            json.writeEndObject();
        }
        json.writeEndArray();
    }

    private void writeCuda(JsonGenerator json, String name) throws IOException {
        json.writeStartArray();
        for (SharedMemory.CudaRegion region :
                name.isEmpty() ? memory.cudaRegions() : List.of(memory.cudaRegion(name))) {
            json.writeStartObject();
            JsonResponses.writeString(json, "name", region.name());
            json.writeNumberField("device_id", region.deviceId());
            json.writeNumberField("byte_size", region.byteSize());
            json.writeEndObject();
        }
        json.writeEndArray();
    }

    private void register(MemorySegment body, String region) {
        memory.checkAllowed();
        if (region.isEmpty()) {
            throw JsonFields.invalid(
                    "'region name' is necessary to register " + (isCuda ? "cuda" : "system") + " shared memory region");
        }
        SharedMemoryRegisterRequest request = new SharedMemoryRegisterRequest(region, body);
        if (isCuda) {
            request.registerCuda(memory);
        } else {
            request.registerSystem(memory);
        }
    }

    private void unregister(String region) {
        boolean isAll = region.isEmpty();
        if (isCuda) {
            if (isAll) {
                memory.unregisterAllCuda();
            } else {
                memory.unregisterCuda(region);
            }
        } else if (isAll) {
            memory.unregisterAll();
        } else {
            memory.unregister(region);
        }
    }
}
