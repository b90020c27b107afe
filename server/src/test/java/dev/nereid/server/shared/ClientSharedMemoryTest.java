package dev.nereid.server.shared;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.GpuAccess;
import dev.nereid.api.memory.SharedMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The texts are those of the recorded exchanges of the reference server. */
final class ClientSharedMemoryTest {
    @TempDir
    private Path directory;

    private ClientSharedMemory memory;

    @BeforeEach
    void setUp() throws IOException {
        memory = ClientSharedMemory.in(Files.createDirectory(directory.resolve("shm")), GpuAccess.NONE);
        segment("seg", 64);
    }

    @AfterEach
    void close() {
        memory.close();
        assertThat(memory.regions()).isEmpty();
    }

    @Test
    void mapsASegmentThatBothSidesSee() throws IOException {
        memory.register("g", "/seg", 0, 64);

        try (TensorBuffer lease = memory.lease("g", 16, 8)) {
            lease.segment().set(ValueLayout.JAVA_LONG_UNALIGNED, 0, 42);
            assertThat(lease.segment().byteSize()).isEqualTo(8);
            assertThat(lease.segment().isMapped()).isTrue();
        }

        assertThat(ByteBuffer.wrap(Files.readAllBytes(directory.resolve("shm/seg")))
                        .order(java.nio.ByteOrder.nativeOrder())
                        .getLong(16))
                .isEqualTo(42);
    }

    @ParameterizedTest
    @ValueSource(strings = {"seg", "/seg", "///seg"})
    void takesKeysWithAndWithoutSlashesInFront(String key) {
        memory.register("g", key, 0, 64);

        assertThat(memory.region("g")).isEqualTo(new SharedMemory.Region("g", key, 0, 64));
    }

    @Test
    void takesPartsThatDoNotBeginAtAPage() throws IOException {
        segment("large", 10_000);
        try (RandomAccessFile file =
                new RandomAccessFile(directory.resolve("shm/large").toFile(), "rw")) {
            file.write(new byte[] {1, 2, 3, 4, 5, 6, 7, 8});
        }
        memory.register("g", "large", 3, 9_997);

        try (TensorBuffer lease = memory.lease("g", 2, 9_995)) {
            assertThat(lease.segment().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 6);
        }
    }

    @Test
    void takesANameOnce() {
        memory.register("g", "/seg", 0, 64);

        assertError(
                () -> memory.register("g", "/seg", 0, 64),
                ErrorCode.ALREADY_EXISTS,
                "shared memory region 'g' already in manager");
    }

    @Test
    void takesAnEmptyName() {
        memory.register("", "/seg", 0, 64);
        memory.register("g", "/seg", 0, 64);

        assertThat(memory.regions())
                .containsExactly(
                        new SharedMemory.Region("", "/seg", 0, 64), new SharedMemory.Region("g", "/seg", 0, 64));
    }

    @ParameterizedTest
    @ValueSource(strings = {"/nope", "/../etc/passwd", "..", "/..", ".", "a/b", "a\0b", "/dir", "/link", "/dangling"})
    void opensNothingButSegments(String key) throws IOException {
        Files.createDirectory(directory.resolve("shm/dir"));
        Files.writeString(directory.resolve("etc"), "secret");
        Files.createSymbolicLink(directory.resolve("shm/link"), directory.resolve("etc"));
        Files.createSymbolicLink(directory.resolve("shm/dangling"), directory.resolve("nowhere"));

        assertError(
                () -> memory.register("h", key, 0, 4),
                ErrorCode.INTERNAL,
                "Unable to open shared memory region: '" + key + "'");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "/", "///"})
    void refusesKeysThatNameNothing(String key) {
        assertError(
                () -> memory.register("h", key, 0, 4),
                ErrorCode.INVALID_ARGUMENT,
                "cannot register shared memory region 'h' - invalid shm key '" + key + "'");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "triton_python_backend_shm_region_1",
                "/triton_python_backend_shm_region_1",
                "//triton_python_backend_shm_region_"
            })
    void refusesKeysThatAreReserved(String key) throws IOException {
        segment("triton_python_backend_shm_region_1", 4);
        memory.register("h", "/seg", 0, 64); // the key is checked before the name

        assertError(
                () -> memory.register("h", key, 0, 4),
                ErrorCode.INVALID_ARGUMENT,
                "cannot register shared memory region 'h' with key '" + key
                        + "' as the key contains the reserved prefix 'triton_python_backend_shm_region_'");
    }

    @ParameterizedTest
    @CsvSource({"0, 65", "64, 1", "65, 0", "1, 64", "-1, 2", "1, -1", "9223372036854775807, 9223372036854775807"})
    void refusesPartsBeyondTheSegment(long offset, long byteSize) {
        assertError(
                () -> memory.register("h", "/seg", offset, byteSize),
                ErrorCode.INVALID_ARGUMENT,
                "failed to register shared memory region 'h': invalid args");
        assertThat(directory.resolve("shm/seg")).hasSize(64);
    }

    @Test
    void refusesAPartOfNoSize() {
        assertError(
                () -> memory.register("h4", "/seg", 0, 0),
                ErrorCode.INVALID_ARGUMENT,
                "failed to register shared memory region 'h4': unable to process address spaceInvalid argument");
    }

    @ParameterizedTest
    @CsvSource({"0, 0", "0, 64", "63, 1", "48, 16", "48, 0"})
    void leasesPartsThatLieInTheRegion(long offset, long byteSize) {
        memory.register("g", "/seg", 0, 64);

        try (TensorBuffer lease = memory.lease("g", offset, byteSize)) {
            assertThat(lease.segment().byteSize()).isEqualTo(byteSize);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "64, 0, Invalid offset for",
        "-1, 16, Invalid offset for",
        "49, 16, Invalid offset + byte size for",
        "0, 65, Invalid offset + byte size for",
        "0, -1, Invalid offset + byte size for",
        "1, -2, Invalid offset + byte size for",
        "1, 9223372036854775807, Invalid offset + byte size for"
    })
    void refusesPartsThatDoNotLieInTheRegion(long offset, long byteSize, String text) {
        memory.register("g", "/seg", 0, 64);

        assertError(
                () -> memory.lease("g", offset, byteSize),
                ErrorCode.INVALID_ARGUMENT,
                text + " shared memory region: 'g'");
    }

    @ParameterizedTest
    @CsvSource({"1, -1, 18446744073709551615", "32, -32, 18446744073709551584"})
    void refusesPartsWhoseEndOverflows(long offset, long byteSize, String unsigned) {
        memory.register("g", "/seg", 0, 64);

        assertError(
                () -> memory.lease("g", offset, byteSize),
                ErrorCode.INVALID_ARGUMENT,
                "Integer overflow detected: byte_size (" + unsigned + ") + offset (" + offset
                        + ") exceeds maximum value (18446744073709551615) for region 'g'");
    }

    @Test
    void noticesASegmentThatWasCutOff() throws IOException {
        memory.register("g", "/seg", 0, 64);

        cut("seg", 40);

        assertError(
                () -> memory.lease("g", 32, 16),
                ErrorCode.INVALID_ARGUMENT,
                "shared memory region 'g': its segment ends 40 bytes behind the start of the region"
                        + " (expected: not before byte 48)");
        memory.lease("g", 24, 16).close();
    }

    @Test
    void keepsARegionRegisteredForTheLeasesThatWereTakenBefore() {
        memory.register("g", "/seg", 0, 64);
        TensorBuffer one = memory.lease("g", 0, 8);
        TensorBuffer other = memory.lease("g", 8, 8);

        memory.unregister("g");
        one.close();

        assertThat(memory.region("g")).isEqualTo(new SharedMemory.Region("g", "/seg", 0, 64));
        assertThat(memory.regions()).hasSize(1);
        for (String key : List.of("/seg", "/other")) {
            assertError(
                    () -> memory.register("g", key, 0, 32),
                    ErrorCode.ALREADY_EXISTS,
                    "shared memory region 'g' already in manager");
        }
        other.close();
        assertThat(memory.regions()).isEmpty();
        assertError(() -> memory.lease("g", 0, 8), ErrorCode.NOT_FOUND, "Unable to find shared memory region: 'g'");
        memory.register("g", "/seg", 0, 32);
        memory.lease("g", 0, 8).close();
    }

    @Test
    void letsLaterLeasesUseAnUnregisteredRegionButNotProlongIt() {
        memory.register("g", "/seg", 0, 64);
        TensorBuffer before = memory.lease("g", 0, 8);
        memory.unregister("g");
        TensorBuffer later = memory.lease("g", 8, 8);
        MemorySegment part = later.segment();
        memory.unregister("g"); // once more, which does not prolong it either
        memory.unregisterAll();

        before.close();

        assertThat(memory.regions()).isEmpty();
        part.set(ValueLayout.JAVA_BYTE, 0, (byte) 1);
        memory.register("g", "/seg", 0, 32);
        memory.unregister("nothing");
        later.close();
        assertThatIllegalStateException().isThrownBy(() -> part.get(ValueLayout.JAVA_BYTE, 0));
        assertThatIllegalStateException().isThrownBy(later::close);
        assertThat(memory.regions()).hasSize(1); // the second one, which the first one's leases are nothing to
    }

    @Test
    void unregistersARegionWhenTheLastRequestCompletesAndKeepsItMapped() {
        memory.register("g", "/seg", 0, 64);
        SharedMemory.Lease lease = memory.lease("g", 0, 8);
        MemorySegment part = lease.segment();
        memory.unregister("g");

        lease.releaseRegistration();
        lease.releaseRegistration();

        assertThat(memory.regions()).isEmpty();
        part.set(ValueLayout.JAVA_BYTE, 0, (byte) 1);
        memory.register("g", "/seg", 0, 32);
        lease.close();
        assertThatIllegalStateException().isThrownBy(() -> part.get(ValueLayout.JAVA_BYTE, 0));
        assertThat(memory.regions()).hasSize(1);
    }

    @Test
    void unregistersEachOfAllRegionsAfterItsOwnLeases() {
        memory.register("idle", "/seg", 0, 64);
        memory.register("used", "/seg", 0, 64);
        TensorBuffer lease = memory.lease("used", 0, 8);

        memory.unregisterAll();

        assertThat(memory.regions()).extracting(SharedMemory.Region::name).containsExactly("used");
        lease.close();
        assertThat(memory.regions()).isEmpty();
    }

    @Test
    void unregistersARegionWhoseLeaseWasRefused() {
        memory.register("g", "/seg", 0, 64);
        assertThatExceptionOfType(InferenceException.class).isThrownBy(() -> memory.lease("g", 64, 1));

        memory.unregister("g");

        assertThat(memory.regions()).isEmpty();
    }

    @Test
    void unregistersWhileOthersLease() throws Exception {
        try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
            for (int round = 0; round < 500; round++) {
                memory.register("g", "/seg", 0, 64);
                Future<?> leasing = threads.submit(() -> {
                    for (int i = 0; i < 20; i++) {
                        try (TensorBuffer lease = memory.lease("g", 0, 8)) {
                            lease.segment().set(ValueLayout.JAVA_BYTE, 0, (byte) i);
                        } catch (InferenceException e) {
                            assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND);
                        }
                    }
                });
                Future<?> unregistering = threads.submit(() -> memory.unregister("g"));
                leasing.get();
                unregistering.get();
                assertThat(memory.regions()).isEmpty();
            }
        }
    }

    @Test
    void forgetsWhatIsUnregistered() {
        memory.register("a", "/seg", 0, 64);
        memory.register("b", "/seg", 8, 8);

        memory.unregister("zz");
        memory.unregister("a");

        assertThat(memory.regions()).extracting(SharedMemory.Region::name).containsExactly("b");
        memory.unregisterAll();
        assertThat(memory.regions()).isEqualTo(List.of());
        assertError(() -> memory.region("b"), ErrorCode.NOT_FOUND, "Unable to find system shared memory region: 'b'");
    }

    @Test
    void behavesAsAServerWithoutGraphicsProcessors() {
        assertError(
                () -> memory.registerCuda("x", ByteBuffer.allocate(64), 0, 64),
                ErrorCode.INVALID_ARGUMENT,
                "failed to register CUDA shared memory region: 'x', GPUs not supported");
        assertError(() -> memory.cudaRegion("x"), ErrorCode.NOT_FOUND, "Unable to find cuda shared memory region: 'x'");
        assertThat(memory.cudaRegions()).isEmpty();
        memory.unregisterCuda("x");
        memory.unregisterAllCuda();
    }

    @Test
    void registersMemoryOfGpus() {
        FakeGpus gpus = new FakeGpus();
        try (ClientSharedMemory shared = ClientSharedMemory.in(directory.resolve("shm"), gpus)) {
            shared.registerCuda("gpu", ByteBuffer.allocate(64), 1, 16);

            assertThat(shared.cudaRegions()).containsExactly(new SharedMemory.CudaRegion("gpu", 1, 16));
            assertThat(shared.cudaRegion("gpu").byteSize()).isEqualTo(16);
            assertThat(shared.regions()).isEmpty();
            assertError(
                    () -> shared.region("gpu"),
                    ErrorCode.NOT_FOUND,
                    "Unable to find system shared memory region: 'gpu'");
            SharedMemory.Lease lease = shared.lease("gpu", 4, 8);
            assertThat(lease.place()).isEqualTo(new MemoryPlace(MemoryPlace.Kind.GPU, 1));
            assertThat(lease.segment().address()).isEqualTo(FakeGpus.ADDRESS + 4);
            assertThat(lease.segment().byteSize()).isEqualTo(8);
            assertError(
                    () -> shared.lease("gpu", 4, 13),
                    ErrorCode.INVALID_ARGUMENT,
                    "Invalid offset + byte size for shared memory region: 'gpu'");

            shared.unregister("gpu");
            shared.unregisterAll();
            assertThat(shared.cudaRegions()).as("of the other kind").hasSize(1);
            shared.unregisterAllCuda();
            assertThat(shared.cudaRegions()).as("in use").hasSize(1);
            lease.releaseRegistration();
            assertThat(shared.cudaRegions()).isEmpty();
            assertThat(gpus.open).as("the request still uses it").isEqualTo(1);
            lease.close();
            assertThat(gpus.open).isZero();
        }
    }

    @Test
    void refusesMemoryOfGpusThatCannotBeUsed() {
        FakeGpus gpus = new FakeGpus();
        try (ClientSharedMemory shared = ClientSharedMemory.in(directory.resolve("shm"), gpus)) {
            ByteBuffer handle = ByteBuffer.allocate(64);
            assertError(
                    () -> shared.registerCuda("gpu", ByteBuffer.allocate(63), 1, 16),
                    ErrorCode.INVALID_ARGUMENT,
                    "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t");
            for (long device : new long[] {-1, 2, 1L << 32 | 1}) {
                assertError(
                        () -> shared.registerCuda("gpu", handle, device, 16),
                        ErrorCode.INVALID_ARGUMENT,
                        "failed to register CUDA shared memory region: 'gpu', device_id "
                                + Long.toUnsignedString(device)
                                + " (expected: one of [0, 1], the GPUs of the server)");
            }
            for (long size : new long[] {0, -1}) {
                assertError(
                        () -> shared.registerCuda("gpu", handle, 1, size),
                        ErrorCode.INVALID_ARGUMENT,
                        "failed to register CUDA shared memory region: 'gpu', byte_size " + Long.toUnsignedString(size)
                                + " (expected: the size of the memory, at least 1)");
            }
            assertError(
                    () -> shared.registerCuda("gpu", handle, 1, 17),
                    ErrorCode.INVALID_ARGUMENT,
                    "failed to register CUDA shared memory region: 'gpu', too large");
            shared.registerCuda("gpu", handle, 1, 16);
            assertError(
                    () -> shared.registerCuda("gpu", handle, 1, 16),
                    ErrorCode.ALREADY_EXISTS,
                    "shared memory region 'gpu' already in manager");
            assertThat(gpus.open).isEqualTo(1);
        }
        assertThat(gpus.open).isZero();
    }

    /** Two GPUs with 16 bytes that clients share. */
    private static final class FakeGpus implements GpuAccess {
        static final long ADDRESS = 0x7f0000000000L;

        private int open;

        @Override
        public Optional<String> uuid(int gpu) {
            return Optional.empty();
        }

        @Override
        public Optional<DeviceMemory.Use> pinnedUse() {
            return Optional.empty();
        }

        @Override
        public List<Integer> numbers() {
            return List.of(0, 1);
        }

        @Override
        public Optional<DeviceMemory> memory(MemoryPlace place) {
            return Optional.empty();
        }

        @Override
        public Optional<TensorBuffer> allocatePinned(long byteSize) {
            return Optional.empty();
        }

        @Override
        @SuppressWarnings("restricted")
        public Opened open(ByteBuffer handle, int gpu, long byteSize) {
            if (byteSize > 16) {
                throw new InferenceException(ErrorCode.INVALID_ARGUMENT, "too large");
            }
            open++;
            return new Opened() {
                @Override
                public MemorySegment segment() {
                    return MemorySegment.ofAddress(ADDRESS).reinterpret(byteSize);
                }

                @Override
                public void close() {
                    open--;
                }
            };
        }

        @Override
        public Optional<String> failure() {
            return Optional.empty();
        }

        @Override
        public void close() {}
    }

    private Path segment(String name, int size) throws IOException {
        return Files.write(directory.resolve("shm").resolve(name), new byte[size]);
    }

    private void cut(String name, int size) throws IOException {
        try (RandomAccessFile file =
                new RandomAccessFile(directory.resolve("shm").resolve(name).toFile(), "rw")) {
            file.setLength(size);
        }
    }

    private static void assertError(ThrowingCallable action, ErrorCode code, String message) {
        assertThatExceptionOfType(InferenceException.class)
                .isThrownBy(action)
                .withMessage(message)
                .satisfies(error -> assertThat(error.code()).isEqualTo(code));
    }
}
