//! `imbrex create`.

use super::{emit, stack_with_settings};
use crate::Failure;
use crate::args::CreateArgs;
use imbrex_core::buffer::ContentKind;
use imbrex_serve::image::{Image, ImageDescription, ImageNode};
use imbrex_sim::experiment::config::Destage;
use imbrex_sim::experiment::{BuildOptions, Plan};
use imbrex_sim::quantity::{Size, parse_size};
use imbrex_sim::report::human_bytes;

/// Root seed of the band layout of every image.
pub const IMAGE_SEED: u64 = 1;

/// Makes the images of a stack.
pub fn run(args: &CreateArgs) -> Result<(), Failure> {
    let mut config = stack_with_settings(&args.stack, &args.set)?;
    if let Some(size) = &args.size {
        config.size = Some(Size(parse_size(size)?));
    }
    if config
        .cache()
        .is_some_and(|cache| cache.destage == Destage::Cached)
    {
        return Err(
            "destage = \"cached\" can lose blocks that were durable and is for simulation only; \
                    accepted here: \"durable\""
                .into(),
        );
    }
    let plan = Plan::new(&config, &image_options())?;
    config.size = Some(Size(plan.blocks().bytes()));
    let mut nodes = Vec::new();
    // The disks are built once as simulated ones, which knows how large each must be.
    plan.build_on(
        Some(plan.blocks().bytes()),
        None,
        ContentKind::Counted,
        &mut |disk, model| {
            let blocks = imbrex_core::disk::Disk::geometry(&model).blocks;
            if disk.backing.is_none() {
                nodes.push(ImageNode {
                    name: disk.name.clone(),
                    blocks,
                });
            }
            Ok(Box::new(model))
        },
    )?;
    let description = ImageDescription {
        stack_toml: toml::to_string(&config)?,
        size_bytes: plan.blocks().bytes(),
        nodes,
    };
    Image::create(&args.data, &description)?;
    emit(&format!(
        "created {}: {} of {}; next: imbrex serve {} --data {} --socket PATH\n",
        args.data.display(),
        config.name,
        human_bytes(plan.blocks().bytes()),
        args.stack,
        args.data.display()
    ));
    Ok(())
}

/// How the stack of an image is built: the same at its creation and at every opening.
pub fn image_options() -> BuildOptions {
    BuildOptions {
        seed: IMAGE_SEED,
        size_bytes: None,
        scale: 1,
        trim_disks: true,
        contents_dir: None,
        durability: None,
    }
}
