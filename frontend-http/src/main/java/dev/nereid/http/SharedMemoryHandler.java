package dev.nereid.http;

import dev.nereid.api.InferenceServer;
import dev.nereid.api.SharedMemory;
import io.vertx.core.Context;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** Registers memory that clients share with the server, and tells of it. Confined to one event loop. */
final class SharedMemoryHandler {
    private final InferenceServer server;
    private final SharedMemory memory;
    private final BodyLimits limits;
    private final EventLoop loop;

    /**
     * Creates the handler of one event loop.
     *
     * @param server who has the memory
     * @param limits the limits
     * @param context the event loop
     */
    SharedMemoryHandler(InferenceServer server, BodyLimits limits, Context context) {
        this.server = server;
        this.memory = server.sharedMemory();
        this.limits = limits;
        this.loop = new EventLoop(context);
    }

    /** Waits for the body, and does what is asked. */
    void handle(HttpServerRequest request, RegionPath path) {
        // Mapping memory, and above all its end, takes time.
        JsonBody.receiveForWorker(request, server, limits, loop, body -> {
            byte[] answer = answer(path, body);
            HttpServerResponse response = request.response();
            return JsonBody.Prepared.of(() -> response.putHeader(HttpHeaders.CONTENT_TYPE, ContentTypes.JSON)
                    .end(Buffer.buffer(answer)));
        });
    }

    private byte[] answer(RegionPath path, MemorySegment body) {
        return switch (path.verb()) {
            case STATUS -> path.isCuda() ? cudaStatus(path.region()) : systemStatus(path.region());
            case REGISTER -> {
                register(path, body);
                yield new byte[0];
            }
            case UNREGISTER -> {
                unregister(path);
                yield new byte[0];
            }
        };
    }

    private byte[] systemStatus(String name) {
        List<SharedMemory.Region> regions = name.isEmpty() ? memory.regions() : List.of(memory.region(name));
        JsonWriter json = new JsonWriter().raw("[");
        for (int i = 0; i < regions.size(); i++) {
            SharedMemory.Region region = regions.get(i);
            json.raw(i == 0 ? "{\"name\":" : ",{\"name\":").string(region.name());
            json.raw(",\"key\":").string(region.key());
            json.raw(",\"offset\":").integer(region.offset());
            json.raw(",\"byte_size\":").integer(region.byteSize()).raw("}");
        }
        return json.raw("]").toByteArray();
    }

    private byte[] cudaStatus(String name) {
        List<SharedMemory.CudaRegion> regions =
                name.isEmpty() ? memory.cudaRegions() : List.of(memory.cudaRegion(name));
        JsonWriter json = new JsonWriter().raw("[");
        for (int i = 0; i < regions.size(); i++) {
            SharedMemory.CudaRegion region = regions.get(i);
            json.raw(i == 0 ? "{\"name\":" : ",{\"name\":").string(region.name());
            json.raw(",\"device_id\":").integer(region.deviceId());
            json.raw(",\"byte_size\":").integer(region.byteSize()).raw("}");
        }
        return json.raw("]").toByteArray();
    }

    private void register(RegionPath path, MemorySegment body) {
        memory.checkAllowed();
        if (path.region().isEmpty()) {
            throw JsonFields.invalid("'region name' is necessary to register " + (path.isCuda() ? "cuda" : "system")
                    + " shared memory region");
        }
        RegisterRequest request = new RegisterRequest(path.region(), body);
        if (path.isCuda()) {
            request.registerCuda(memory);
        } else {
            request.registerSystem(memory);
        }
    }

    private void unregister(RegionPath path) {
        boolean all = path.region().isEmpty();
        if (path.isCuda()) {
            if (all) {
                memory.unregisterAllCuda();
            } else {
                memory.unregisterCuda(path.region());
            }
        } else if (all) {
            memory.unregisterAll();
        } else {
            memory.unregister(path.region());
        }
    }
}
