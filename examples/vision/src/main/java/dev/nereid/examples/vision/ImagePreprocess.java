package dev.nereid.examples.vision;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.util.List;

/**
 * Turns the bytes of PNG and JPEG files into tensors for networks. Stateless.
 *
 * <p>A model has one input of {@code TYPE_STRING} and one output of {@code TYPE_FP32}, {@code [ 3, height, width ]}. The
 * whole picture is scaled to that size. Parameters: {@code mean} and {@code deviation} for each color, and
 * {@code max_pixels}, the largest picture.
 */
public final class ImagePreprocess implements BackendProvider {
    private static final int MAX_PIXELS = 1 << 24;
    private static final int MAX_SIDE = 1 << 14;

    /** For {@code ServiceLoader}. */
    public ImagePreprocess() {}

    @Override
    public String name() {
        return "image_preprocess";
    }

    @Override
    public Backend create(BackendContext context) {
        return model -> {
            Preprocessing preprocessing = Preprocessing.of(model);
            return instance -> batch -> batch.requests().forEach(preprocessing::execute);
        };
    }

    /**
     * The work of one model. Immutable.
     *
     * @param batches whether tensors have a batch dimension
     * @param planes the form of the result
     * @param maxPixels the largest picture
     * @param maxBytes the largest file
     */
    private record Preprocessing(
            String input, String output, boolean batches, Planes planes, int maxPixels, int maxBytes) {
        static Preprocessing of(ModelContext model) {
            ModelSettings settings = model.settings();
            TensorSpec input = Settings.only("input", settings.inputs(), DataType.BYTES);
            TensorSpec output = Settings.only("output", settings.outputs(), DataType.FP32);
            Shape dims = output.dims();
            if (!input.dims().equals(Shape.of(1))) {
                throw Settings.invalid("input dims", input.dims().toString(), "[1]");
            }
            if (dims.rank() != 3 || dims.dim(0) != Picture.CHANNELS || !isSide(dims.dim(1)) || !isSide(dims.dim(2))) {
                throw Settings.invalid("output dims", dims.toString(), "[3,height,width]");
            }
            return new Preprocessing(
                    input.name(),
                    output.name(),
                    settings.batches(),
                    new Planes((int) dims.dim(2), (int) dims.dim(1), Normalization.of(model.parameters())),
                    Settings.positive(model, "max_pixels", MAX_PIXELS),
                    PictureFiles.maxBytes(model));
        }

        private static boolean isSide(long dim) {
            return dim >= 1 && dim <= MAX_SIDE;
        }

        void execute(InferenceRequest request) {
            try {
                List<byte[]> files = PictureFiles.read(request, input, maxBytes);
                Shape item = Shape.of(Picture.CHANNELS, planes.height(), planes.width());
                Shape shape = batches ? item.prepend(files.size()) : item;
                Tensor tensor = request.response().allocate(output, DataType.FP32, shape);
                for (int i = 0; i < files.size(); i++) {
                    if (request.isCancelled()) {
                        throw new BackendException(ErrorCode.CANCELLED, "request was cancelled");
                    }
                    Picture picture = PictureDecoder.decode(files.get(i), maxPixels);
                    planes.write(picture, tensor.data().asSlice(i * planes.byteSize(), planes.byteSize()));
                }
            } catch (BackendException e) {
                request.fail(e);
            }
        }
    }
}
