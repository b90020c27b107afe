package dev.nereid.grpc;

import static dev.nereid.grpc.testing.TestFrontend.assertFails;
import static io.grpc.Status.Code.ALREADY_EXISTS;
import static io.grpc.Status.Code.INTERNAL;
import static io.grpc.Status.Code.INVALID_ARGUMENT;
import static io.grpc.Status.Code.NOT_FOUND;
import static io.grpc.Status.Code.UNIMPLEMENTED;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import dev.nereid.api.ModelControl;
import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.FakeControl;
import dev.nereid.testkit.FakeModel;
import inference.CudaSharedMemoryRegisterRequest;
import inference.CudaSharedMemoryStatusRequest;
import inference.CudaSharedMemoryStatusResponse;
import inference.CudaSharedMemoryUnregisterRequest;
import inference.ModelRepositoryParameter;
import inference.RepositoryIndexRequest;
import inference.RepositoryIndexResponse;
import inference.RepositoryModelLoadRequest;
import inference.RepositoryModelUnloadRequest;
import inference.SystemSharedMemoryRegisterRequest;
import inference.SystemSharedMemoryStatusRequest;
import inference.SystemSharedMemoryStatusResponse;
import inference.SystemSharedMemoryUnregisterRequest;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Tests the methods for models and for shared memory. */
final class ControlMethodsIT {
    private static final ModelRepositoryParameter TEXT =
            ModelRepositoryParameter.newBuilder().setStringParam("{}").build();
    private static final ModelRepositoryParameter BYTES = ModelRepositoryParameter.newBuilder()
            .setBytesParam(ByteString.copyFromUtf8("content"))
            .build();
    private static final ModelRepositoryParameter TRUE =
            ModelRepositoryParameter.newBuilder().setBoolParam(true).build();

    @AutoClose
    private final TestFrontend frontend = new TestFrontend();

    private void load(RepositoryModelLoadRequest.Builder request) {
        assertThat(frontend.client.repositoryModelLoad(request.build())).isNotNull();
    }

    private void unload(RepositoryModelUnloadRequest.Builder request) {
        assertThat(frontend.client.repositoryModelUnload(request.build())).isNotNull();
    }

    private static RepositoryModelLoadRequest.Builder loading(String model) {
        return RepositoryModelLoadRequest.newBuilder().setModelName(model);
    }

    private static RepositoryModelUnloadRequest.Builder unloading(String model) {
        return RepositoryModelUnloadRequest.newBuilder().setModelName(model);
    }

    @Test
    void listsModels() {
        frontend.server.add(FakeModel.identity("m", DataType.FP32, 0, 1));
        RepositoryIndexResponse.Builder expected = RepositoryIndexResponse.newBuilder();
        expected.addModelsBuilder().setName("m").setVersion("1").setState("READY");

        assertThat(frontend.client.repositoryIndex(RepositoryIndexRequest.getDefaultInstance()))
                .isEqualTo(expected.build());
        assertThat(frontend.client.repositoryIndex(
                        RepositoryIndexRequest.newBuilder().setReady(true).build()))
                .isEqualTo(expected.build());
        assertFails(
                () -> frontend.client.repositoryIndex(RepositoryIndexRequest.newBuilder()
                        .setRepositoryName("r")
                        .build()),
                UNIMPLEMENTED,
                "'repository_name' specification is not supported");
    }

    @Test
    void loadsModels() {
        load(loading("m").putParameters("config", TEXT).putParameters("file:1/model.onnx", BYTES));
        load(loading("n"));
        load(loading("o").putParameters("force", TRUE));

        assertThat(frontend.server.control().loads()).hasSize(3);
        var first = frontend.server.control().loads().getFirst();
        assertThat(first.model()).isEqualTo("m");
        assertThat(first.config()).contains("{}");
        assertThat(first.files().get("1/model.onnx"))
                .isEqualTo(BYTES.getBytesParam().asReadOnlyByteBuffer());
        assertThat(frontend.server.control().loads().get(1).config()).isEmpty();
        assertThat(frontend.server.control().loads())
                .extracting(ModelControl.Load::isForced)
                .containsExactly(false, false, true);
    }

    @Test
    void refusesInvalidLoadParameters() {
        assertFails(
                () -> load(loading("m").setRepositoryName("r")),
                UNIMPLEMENTED,
                "'repository_name' specification is not supported");
        assertFails(
                () -> load(loading("m").putParameters("config", TRUE)),
                INVALID_ARGUMENT,
                "invalid value type for load parameter 'config', expected string_param.");
        assertFails(
                () -> load(loading("m").putParameters("file:x", TEXT)),
                INVALID_ARGUMENT,
                "invalid value type for load parameter 'file:x', expected bytes_param.");
        assertFails(
                () -> load(loading("m").putParameters("force", TEXT)),
                INVALID_ARGUMENT,
                "invalid value type for load parameter 'force', expected bool_param.");
        assertFails(
                () -> load(loading("m").putParameters("foo", TEXT)),
                INVALID_ARGUMENT,
                "unrecognized load parameter 'foo'.");
        assertThat(frontend.server.control().loads()).isEmpty();
    }

    @Test
    void reportsWhyAModelDoesNotLoad() {
        frontend.server.control().failWith(ErrorCode.INTERNAL, "failed to load 'm'");

        assertFails(() -> load(loading("m")), INTERNAL, "failed to load 'm'");
        assertFails(() -> unload(unloading("m")), INTERNAL, "failed to load 'm'");
    }

    @Test
    void unloadsModels() {
        unload(unloading("m").putParameters("unload_dependents", TRUE));
        unload(unloading("n").putParameters("foo", TRUE));

        assertThat(frontend.server.control().unloads())
                .containsExactly(new FakeControl.Unload("m", true), new FakeControl.Unload("n", false));
        assertFails(
                () -> unload(unloading("m").putParameters("unload_dependents", TEXT)),
                INVALID_ARGUMENT,
                "invalid value type for 'unload_dependents' parameter, expected bool_param.");
        assertFails(
                () -> unload(unloading("m").setRepositoryName("r")),
                UNIMPLEMENTED,
                "'repository_name' specification is not supported");
    }

    private void register(String name) {
        assertThat(frontend.client.systemSharedMemoryRegister(SystemSharedMemoryRegisterRequest.newBuilder()
                        .setName(name)
                        .setKey("/" + name)
                        .setOffset(4096)
                        .setByteSize(64)
                        .build()))
                .isNotNull();
    }

    private SystemSharedMemoryStatusResponse status(String name) {
        return frontend.client.systemSharedMemoryStatus(
                SystemSharedMemoryStatusRequest.newBuilder().setName(name).build());
    }

    private void unregister(String name) {
        assertThat(frontend.client.systemSharedMemoryUnregister(SystemSharedMemoryUnregisterRequest.newBuilder()
                        .setName(name)
                        .build()))
                .isNotNull();
    }

    @Test
    void registersSharedMemory() {
        register("a");
        register("b");
        register("c");

        assertThat(status("").getRegionsMap()).containsOnlyKeys("a", "b", "c");
        assertThat(status("b").getRegionsMap())
                .containsExactly(Map.entry(
                        "b",
                        SystemSharedMemoryStatusResponse.RegionStatus.newBuilder()
                                .setName("b")
                                .setKey("/b")
                                .setOffset(4096)
                                .setByteSize(64)
                                .build()));
        assertFails(() -> register("a"), ALREADY_EXISTS, "shared memory region 'a' already in manager");

        unregister("a");
        unregister("x");
        assertThat(status("").getRegionsMap()).containsOnlyKeys("b", "c");
        assertFails(() -> status("a"), NOT_FOUND, "Unable to find system shared memory region: 'a'");

        unregister("");
        assertThat(status("").getRegionsMap()).isEmpty();
    }

    @Test
    void registersMemoryOfAGpu() {
        frontend.server.sharedMemory().addGpu();
        ByteString handle = ByteString.copyFrom(new byte[64]);
        for (String name : List.of("a", "b")) {
            frontend.client.cudaSharedMemoryRegister(CudaSharedMemoryRegisterRequest.newBuilder()
                    .setName(name)
                    .setRawHandle(handle)
                    .setByteSize(64)
                    .build());
        }
        assertThat(frontend.server.sharedMemory().cudaThreads())
                .as("the driver may take long: no event loop")
                .hasSize(2)
                .allMatch(thread -> thread.getName().startsWith("worker/"));

        assertThat(frontend.client
                        .cudaSharedMemoryStatus(CudaSharedMemoryStatusRequest.getDefaultInstance())
                        .getRegionsMap())
                .containsOnlyKeys("a", "b");
        CudaSharedMemoryStatusResponse one = frontend.client.cudaSharedMemoryStatus(
                CudaSharedMemoryStatusRequest.newBuilder().setName("b").build());
        assertThat(one.getRegionsMap())
                .containsExactly(Map.entry(
                        "b",
                        CudaSharedMemoryStatusResponse.RegionStatus.newBuilder()
                                .setName("b")
                                .setDeviceId(0)
                                .setByteSize(64)
                                .build()));
        assertFails(
                () -> frontend.client.cudaSharedMemoryRegister(CudaSharedMemoryRegisterRequest.newBuilder()
                        .setName("b")
                        .setRawHandle(handle)
                        .setByteSize(64)
                        .build()),
                ALREADY_EXISTS,
                "shared memory region 'b' already in manager");
        frontend.client.cudaSharedMemoryUnregister(
                CudaSharedMemoryUnregisterRequest.newBuilder().setName("a").build());
        assertThat(frontend.server.sharedMemory().cudaRegions()).hasSize(1);
        frontend.client.cudaSharedMemoryUnregister(CudaSharedMemoryUnregisterRequest.getDefaultInstance());
        assertThat(frontend.server.sharedMemory().cudaRegions()).isEmpty();
    }

    @Test
    void hasNoGraphicsMemory() {
        assertThat(frontend.client
                        .cudaSharedMemoryStatus(CudaSharedMemoryStatusRequest.getDefaultInstance())
                        .getRegionsMap())
                .isEmpty();
        assertFails(
                () -> frontend.client.cudaSharedMemoryStatus(
                        CudaSharedMemoryStatusRequest.newBuilder().setName("x").build()),
                NOT_FOUND,
                "Unable to find cuda shared memory region: 'x'");
        assertFails(
                () -> frontend.client.cudaSharedMemoryRegister(CudaSharedMemoryRegisterRequest.newBuilder()
                        .setName("x")
                        .setByteSize(64)
                        .build()),
                INVALID_ARGUMENT,
                "failed to register CUDA shared memory region: 'x', GPUs not supported");
        assertThat(frontend.client.cudaSharedMemoryUnregister(CudaSharedMemoryUnregisterRequest.getDefaultInstance()))
                .isNotNull();
        assertThat(frontend.client.cudaSharedMemoryUnregister(CudaSharedMemoryUnregisterRequest.newBuilder()
                        .setName("x")
                        .build()))
                .isNotNull();
    }
}
