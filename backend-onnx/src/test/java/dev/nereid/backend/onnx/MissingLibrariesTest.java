package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MissingLibrariesTest {
    @ParameterizedTest
    @CsvSource({
        "libcuda.so.1, the driver of the GPU",
        "libcudart.so.12, CUDA 12",
        "libcublasLt.so.12, CUDA 12",
        "libnvrtc.so.12, CUDA 12",
        "libcudnn.so.9, cuDNN 9 for CUDA 12",
        "libnvinfer.so.10, TensorRT 10 for CUDA 12",
        "libnvonnxparser.so.10, TensorRT 10 for CUDA 12",
        "libstdc++.so.6, what the GPU build of ONNX Runtime needs",
    })
    void saysWhatALibraryBelongsTo(String library, String owner) {
        assertThat(MissingLibraries.explanation("FAIL : Failed to load library libonnxruntime_providers_cuda.so with"
                        + " error: " + library + ": cannot open shared object file: No such file or directory\n"))
                .isEqualTo("; " + library + " is part of " + owner + " (expected: in a directory that LD_LIBRARY_PATH"
                        + " names at the start of the server, or among the libraries of the system)");
    }

    /** As with the libraries of CUDA 12.6. */
    @Test
    void saysWhichLibraryIsTooOld() {
        assertThat(MissingLibraries.explanation("FAIL : Failed to load library libonnxruntime_providers_cuda.so with"
                        + " error: libonnxruntime_providers_cuda.so: undefined symbol: cudaLibraryGetKernel, version"
                        + " libcudart.so.12"))
                .isEqualTo("; the libcudart.so.12 of this machine, part of CUDA 12, is too old (expected: the last"
                        + " release of it)");
    }

    @Test
    void hasNothingToAddToOtherMessages() {
        assertThat(MissingLibraries.explanation("CUDA failure 100: no CUDA-capable device is detected"))
                .isEmpty();
    }
}
